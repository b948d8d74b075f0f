// The ratio of a row with its interval, on an axis that all rows share: a line of a forest plot.
"use strict";

(() => {
  const WIDTH = 260;
  const HEIGHT = 20;
  const EDGE = 18; // room for half a label
  const ROOM = 28; // for a label
  const FAR = [[0.1, 0.2, 0.3, 0.5, 0.7, 1.5, 2, 3, 5, 7, 10, 15], [0.1, 0.2, 0.5, 2, 5, 10], [0.1, 10]];
  const { svg } = dashboard;

  /** An axis of log ratios that holds what lies within, as far as it goes each way; `rows`: [{ ratio, low, high, floor }]. */
  dashboard.forestAxis = (rows) => {
    const logs = rows.filter(({ ratio }) => ratio > 0).map(({ ratio, low, high }) => [ratio, low, high].filter((end) => end > 0).map(Math.log));
    const low = -edge(logs.map((ends) => -Math.min(...ends)));
    const high = edge(logs.map((ends) => Math.max(...ends)));
    const unit = (WIDTH - 2 * EDGE) / (high - low);
    const x = (ratio) => EDGE + Math.min(Math.max((Math.log(ratio) - low) * unit, -3), WIDTH - 2 * EDGE + 3);
    return { x, low, high, beyond: (ratio) => Math.log(ratio) < low || Math.log(ratio) > high };
  };

  /** How far an axis goes one way. A few rows may go beyond it, which is drawn: one huge change would hide all others. */
  function edge(reaches) {
    const reach = reaches.map((log) => Math.max(log, 0)).filter(Number.isFinite).sort((a, b) => a - b);
    const usual = reach.length ? Math.max(reach[Math.ceil(0.98 * (reach.length - 1))], reach[reach.length - 1] / 4) : 0;
    return Math.min(Math.max(usual * 1.1, Math.log(1.025)), Math.log(16));
  }

  /** The finest ratios that leave room for their labels; those below 1 as far from it as those above, where they are near. */
  dashboard.forestTicks = (axis) => {
    const near = [0.01, 0.02, 0.05, 0.1, 0.2].map((step) => [1, 2, 3, 4, 5, 6].flatMap((number) => [1 - number * step, 1 + number * step]));
    for (const set of [...near, ...FAR]) {
      const ratios = [...set, 1].filter((ratio) => ratio > 0.01 && !axis.beyond(ratio)).sort((a, b) => a - b);
      if (ratios.every((ratio, at) => !at || axis.x(ratio) - axis.x(ratios[at - 1]) >= ROOM)) return ratios;
    }
    return [1];
  };

  /** Its ticks, in the head of the table. */
  dashboard.forestHead = (axis) => {
    const ratios = dashboard.forestTicks(axis);
    const head = svg("svg", { class: "forest", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img", "aria-label": "Ratio, head by base; below 1 is faster" });
    for (const ratio of ratios) {
      const text = svg("text", { x: axis.x(ratio), y: 11, "text-anchor": "middle" });
      text.textContent = String(Number(ratio.toPrecision(3)));
      head.append(svg("line", { class: "tick", x1: axis.x(ratio), x2: axis.x(ratio), y1: 14, y2: 20 }), text);
    }
    return head;
  };

  /** One line: the floor as a band, the interval as a bar, the ratio as a square. */
  dashboard.forestLine = (axis, { ratio, low, high, floor, verdict }) => {
    const line = svg("svg", { class: `forest verdict-${verdict}`, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, "aria-hidden": "true" });
    const middle = HEIGHT / 2;
    if (floor > 0) {
      const [from, to] = [axis.x(1 - Math.min(floor, 0.9)), axis.x(1 + floor)];
      line.append(svg("rect", { class: "floor", x: from, y: 0, width: to - from, height: HEIGHT }));
    }
    line.append(svg("line", { class: "one", x1: axis.x(1), x2: axis.x(1), y1: 0, y2: HEIGHT }));
    if (!(ratio > 0)) return line;
    if (low > 0 && high > 0) {
      line.append(svg("line", { class: "interval", x1: axis.x(low), x2: axis.x(high), y1: middle, y2: middle }));
      for (const end of [low, high]) line.append(svg("line", { class: "interval", x1: axis.x(end), x2: axis.x(end), y1: middle - 4, y2: middle + 4 }));
    }
    const x = axis.x(ratio);
    if (axis.beyond(ratio)) {
      const way = ratio > 1 ? 1 : -1;
      line.append(svg("path", { class: "point", d: `M${x},${middle}l${-8 * way},-5v10z` }));
    } else line.append(svg("rect", { class: "point", x: x - 3.5, y: middle - 3.5, width: 7, height: 7 }));
    return line;
  };
})();
