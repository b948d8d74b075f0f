// How a chart is moved and zoomed: keys, wheel, and dragging with Shift held down.
"use strict";

(() => {
  const LEAST = 4; // places between the edges, at the closest

  dashboard.moves = (chart, box, { values, count, state, tell, open }) => {
    const last = Math.max(count - 1, 1);

    function show(min, max) {
      const span = Math.min(Math.max(max - min, Math.min(LEAST, last)), last);
      const from = Math.min(Math.max(min, 0), last - span);
      chart.setScale("x", { min: from, max: from + span });
    }

    const moves = {
      pan: (share) => {
        const { min, max } = chart.scales.x;
        show(min + share * (max - min), max + share * (max - min));
      },
      zoom: (factor, around = inside(state.at)) => {
        const { min, max } = chart.scales.x;
        show(around - (around - min) * factor, around - (around - min) * factor + (max - min) * factor);
      },
      reset: () => show(0, last),
      go: (at) => {
        const to = Math.min(Math.max(at, 0), count - 1);
        const [min, max] = [chart.scales.x.min ?? 0, chart.scales.x.max ?? last]; // all, before it is drawn
        if (to < min) show(to, to + max - min);
        else if (to > max) show(to - (max - min), to);
        // The cursor follows once the view has moved, which uPlot does after this task.
        queueMicrotask(() => point(to));
        tell(to);
      },
    };

    function inside(at) {
      const { min, max } = chart.scales.x;
      return at < min || at > max ? (min + max) / 2 : at;
    }

    function point(at) {
      const value = values[at];
      const y = value === null || value === undefined ? 0 : chart.valToPos(value, "y");
      chart.setCursor({ left: chart.valToPos(at, "x"), top: Math.min(Math.max(y, 0), chart.over.clientHeight) }, false);
    }

    const keys = {
      ArrowLeft: () => moves.go(state.at - 1),
      ArrowRight: () => moves.go(state.at + 1),
      PageUp: () => moves.go(state.at - 10),
      PageDown: () => moves.go(state.at + 10),
      Home: () => moves.go(0),
      End: () => moves.go(count - 1),
      "+": () => moves.zoom(0.5),
      "=": () => moves.zoom(0.5),
      "-": () => moves.zoom(2),
      0: () => moves.reset(),
      Escape: () => moves.reset(),
      Enter: () => open && open(state.at),
    };

    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const arrow = { ArrowLeft: -0.25, ArrowRight: 0.25 }[event.key];
      const act = event.shiftKey && arrow ? () => moves.pan(arrow) : Object.hasOwn(keys, event.key) ? keys[event.key] : null;
      if (!act) return;
      event.preventDefault();
      act();
    });
    box.addEventListener("focus", () => point(state.at));

    // A wheel that only scrolls the page stays the page's.
    box.addEventListener("wheel", (event) => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.shiftKey ? event.deltaY : 0;
      if (event.ctrlKey) {
        const left = event.clientX - chart.over.getBoundingClientRect().left;
        moves.zoom(event.deltaY > 0 ? 1.25 : 0.8, chart.posToVal(left, "x"));
      } else if (sideways) moves.pan(sideways / chart.over.clientWidth);
      else return;
      event.preventDefault();
    }, { passive: false });

    // Before uPlot sees it, which would begin to select.
    chart.over.addEventListener("mousedown", (event) => {
      if (!event.shiftKey || event.button !== 0) return;
      event.stopImmediatePropagation();
      event.preventDefault();
      const { min, max } = chart.scales.x;
      const scale = (max - min) / chart.over.clientWidth;
      const move = (now) => show(min - (now.clientX - event.clientX) * scale, max - (now.clientX - event.clientX) * scale);
      addEventListener("mousemove", move);
      addEventListener("mouseup", () => removeEventListener("mousemove", move), { once: true });
    }, { capture: true });

    if (open) chart.over.addEventListener("dblclick", (event) => event.preventDefault());
    return moves;
  };
})();
