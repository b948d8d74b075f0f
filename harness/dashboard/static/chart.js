// One chart over runs, evenly spaced: lines, a band, changes; zoomed and moved by mouse, buttons and keys.
"use strict";

(() => {
  const { el } = dashboard;
  const HEIGHT = 300;

  /**
   * lines: [{ label, values, color, width, points, dash, shown }], the first is the one that is read; band: { low, high };
   * days: a label for each place; releases: see releases.js; marks, levels: see bands.js; unit: of the values; exact:
   * whether they are counted;
   * mode: how the scale is chosen, see bands.js;
   * read(at): what is told of a place, as a node; open(at): what Enter does.
   * Gives the chart with `show(line, shown)`.
   */
  dashboard.chart = (place, { label, lines, band = null, days, releases = [], marks = [], levels = [], unit, exact = false, read, open = null, mode = "usual", scales = true }) => {
    const count = days.length;
    const state = { mode, at: count - 1 };
    const box = el("div", { class: "plot", tabindex: 0, role: "group", "aria-roledescription": "chart", "aria-label":
      `${label}. Arrow keys go from point to point, Shift with them moves the view, plus and minus zoom, Escape shows all` +
      `${open ? ", Enter opens the run" : ""}.` });
    const told = el("div", { class: "readout", "aria-live": "polite" });
    const buttons = [
      ["Earlier", "◂", () => moves.pan(-0.25)], ["Later", "▸", () => moves.pan(0.25)],
      ["Zoom in", "+", () => moves.zoom(0.5)], ["Zoom out", "−", () => moves.zoom(2)], ["Show all", "Show all", () => moves.reset()],
    ].map(([name, sign, act]) => el("button", { type: "button", "aria-label": name, title: name, onclick: act }, sign));
    const scale = el("select", { "aria-label": "Scale", onchange: () => { state.mode = scale.value; rescale(); } },
      el("option", { value: "usual" }, "usual values"), el("option", { value: "all" }, "everything"), el("option", { value: "zero" }, "from zero"));
    place.replaceChildren(
      el("div", { class: "controls chart-controls" }, el("span", { class: "buttons" }, buttons), scales && el("label", {}, "Scale", scale)),
      box, told);

    const first = lines[0].values;
    const shown = lines.map((line) => line.shown !== false);
    const drawn = [...lines.slice(1), lines[0]]; // the one that is read on top of the others
    const bandAt = drawn.length + 1;
    const data = [days.map((_, at) => at), ...drawn.map((line) => line.values), ...(band ? [band.high, band.low] : [])];
    const chart = new uPlot({
      width: width(box), height: HEIGHT,
      legend: { show: false }, padding: [12, 40, 0, 0],
      cursor: { y: false, drag: { x: true, y: false, setScale: true }, bind: { dblclick: () => () => moves.reset() } },
      scales: {
        x: { time: false, range: (_, low, high) => (count > 1 ? [low ?? 0, high ?? count - 1] : [-1, 1]) },
        y: { range: (self) => visibleRange(self.series[0].idxs) },
      },
      series: [{}, ...drawn.map(lineOf), ...(band ? [edge(), edge()] : [])],
      bands: band ? [{ series: [bandAt, bandAt + 1], fill: () => dashboard.color("band") }] : [],
      axes: [axis({ values: (_, ticks) => ticks.map((at) => days[at] || ""), size: 34, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000], space: 90 }),
        ...(releases.length ? [dashboard.releaseAxis(releases)] : []),
        axis({ values: (_, ticks) => dashboard.format.ticks(ticks, unit), size: (_, labels) => Math.max(78, ...(labels || []).map((text) => 14 + 7 * text.length)), space: 36, incrs: dashboard.format.increments(unit) })],
      hooks: {
        drawClear: [(self) => dashboard.drawMarks(self, marks)],
        draw: [(self) => dashboard.drawReleases(self, releases), (self) => dashboard.drawLevels(self, levels), (self) => dashboard.drawBeyond(self, first)],
        setCursor: [(self) => { if (self.cursor.idx !== null && self.cursor.idx !== undefined) tell(self.cursor.idx); }],
      },
    }, data, box);

    // Of the view that is about to be: uPlot has its first and last place before it asks for this.
    function visibleRange([from, to]) {
      const seen = (values) => values.slice(from ?? 0, (to ?? count - 1) + 1);
      return dashboard.range(lines.filter((_, line) => shown[line]).flatMap((line) => seen(line.values)), state.mode, exact, band ? [...seen(band.low), ...seen(band.high)] : []);
    }

    function tell(at) {
      state.at = at;
      told.replaceChildren(read(at));
    }

    function rescale() {
      chart.setScale("x", { min: chart.scales.x.min, max: chart.scales.x.max });
    }

    const moves = dashboard.moves(chart, box, { values: first, count, state, tell, open });
    new ResizeObserver(() => {
      const now = width(box);
      if (now !== chart.width) chart.setSize({ width: now, height: HEIGHT });
    }).observe(box);
    document.addEventListener("themechange", () => chart.redraw(false, true));
    tell(count - 1);
    dashboard.charts.push(chart);
    const show = (line, isShown) => {
      shown[line] = isShown;
      chart.setSeries(line || lines.length, { show: isShown }); // the first is drawn last
      rescale();
    };
    return { chart, moves, show };
  };

  dashboard.charts = []; // for whoever looks from a console

  const width = (box) => Math.max(260, Math.floor(box.clientWidth));

  const lineOf = ({ label, color, width: thickness = 1.5, points = true, dash, shown = true }) => ({
    label, show: shown, width: thickness, dash, stroke: () => dashboard.color(color), spanGaps: true,
    points: { ...(points ? {} : { show: false }), size: 5, fill: () => dashboard.color(color), stroke: () => dashboard.color(color) },
  });

  const edge = () => ({ label: "", width: 0, stroke: "transparent", points: { show: false } });

  const axis = (given) => ({
    stroke: () => dashboard.color("muted"), font: "12px system-ui, sans-serif",
    grid: { stroke: () => dashboard.color("grid"), width: 1 }, ticks: { stroke: () => dashboard.color("grid"), width: 1, size: 4 },
    ...given,
  });
})();
