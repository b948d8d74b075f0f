// What is drawn on a chart besides its lines: ranges of changes, levels, and points beyond the scale.
"use strict";

(() => {
  dashboard.color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  /** marks: [{ from, to, at }] in places of x: the range in which a change may lie, and the likeliest place. */
  dashboard.drawMarks = (chart, marks) => {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const { from, to, at } of marks) {
      // A change lies between two points: the one before it, and the first of the new level.
      const left = chart.valToPos(from - 1, "x", true);
      const right = chart.valToPos(to, "x", true);
      ctx.fillStyle = dashboard.color("mark");
      ctx.fillRect(left, bbox.top, Math.max(right - left, 2), bbox.height);
      const x = Math.round(chart.valToPos(at - 0.5, "x", true));
      ctx.fillStyle = dashboard.color("mark-line");
      ctx.fillRect(x, bbox.top, Math.max(1, devicePixelRatio), bbox.height);
    }
    ctx.restore();
  };

  /** levels: [{ from, to, before, after }]: where a level begins and ends, and its height there. */
  dashboard.drawLevels = (chart, levels) => {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.strokeStyle = dashboard.color("level");
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    for (const { from, to, before, after } of levels) {
      ctx.beginPath();
      ctx.moveTo(chart.valToPos(from, "x", true), chart.valToPos(before, "y", true));
      ctx.lineTo(chart.valToPos(to, "x", true), chart.valToPos(after, "y", true));
      ctx.stroke();
    }
    ctx.restore();
  };

  /** Small triangles at the upper edge, for points that the scale leaves out. */
  dashboard.drawBeyond = (chart, values) => {
    const { ctx, bbox } = chart;
    const { max } = chart.scales.y;
    const size = 5 * devicePixelRatio;
    ctx.save();
    ctx.fillStyle = dashboard.color("line");
    values.forEach((value, at) => {
      if (value === null || value <= max || at < chart.scales.x.min || at > chart.scales.x.max) return;
      const x = chart.valToPos(at, "x", true);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x - size, bbox.top + 1.6 * size);
      ctx.lineTo(x + size, bbox.top + 1.6 * size);
      ctx.fill();
    });
    ctx.restore();
  };

  /**
   * Where a scale should begin and end. `usual`: a spike does not flatten everything else; `all`: everything is on it;
   * `zero`: from zero. Of figures that are timed, a twentieth fills the height at least, so that noise looks small.
   */
  dashboard.range = (values, mode, exact, others) => {
    const known = values.filter(Number.isFinite).sort((a, b) => a - b);
    if (!known.length) return [0, 1];
    const at = (share) => known[Math.min(known.length - 1, Math.round(share * (known.length - 1)))];
    const reach = mode === "usual" ? 3 * Math.max(at(0.95) - at(0.05), 0.02 * Math.abs(at(0.5))) : Infinity;
    let [low, high] = [known[0], known[known.length - 1]];
    for (const value of others) {
      if (!Number.isFinite(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    [low, high] = [Math.max(low, at(0.05) - reach), Math.min(high, at(0.95) + reach)];
    if (mode === "zero") low = Math.min(0, low);
    const least = exact ? (high > low ? 0 : Math.abs(at(0.5)) * 0.1 || 1) : Math.abs(at(0.5)) * 0.05 || 1;
    const room = Math.max((high - low) * 0.08, (least - (high - low)) / 2);
    return [mode === "zero" && low === 0 ? 0 : low - room, high + room];
  };
})();
