// Where the compiler's release changes: a second row of labels below the days of a chart.
"use strict";

(() => {
  const FONT = "12px system-ui, sans-serif";
  const APART = 14; // pixels between two labels
  const TICKS_APART = 4; // pixels between two ticks without labels

  /** toolchain, revision: one for each place. Gives [{ at, name }]; of another build of a release, the revision is the name. */
  dashboard.releases = ({ toolchain, revision }) => {
    const found = [];
    let last = -1; // the place before this one that has a toolchain
    toolchain.forEach((release, at) => {
      if (!release) return;
      const isNew = last < 0 || release !== toolchain[last];
      if (isNew) found.push({ at, name: dashboard.cut(release, 40) });
      else if (revision[at] && revision[last] && revision[at] !== revision[last]) found.push({ at, name: dashboard.cut(revision[at], 9).replace("…", "") });
      last = at;
    });
    return found;
  };

  /** The axis with their names; those that would stand on another are left out, and their ticks stay. */
  dashboard.releaseAxis = (releases) => ({
    scale: "x", side: 2, size: 26, gap: 4, stroke: () => dashboard.color("muted"), font: FONT,
    grid: { stroke: () => dashboard.color("release"), width: 1, dash: [2, 4] },
    ticks: { stroke: () => dashboard.color("muted"), width: 1, size: 6 },
    splits: (chart, _, min, max) => labelled(chart, releases, min, max).map(({ at }) => at),
    values: (chart, splits) => splits.map((at) => inForce(releases, at).name),
  });

  /** Small ticks for all that have no label. */
  dashboard.drawReleases = (chart, releases) => {
    const { ctx, bbox } = chart;
    const bottom = bbox.top + bbox.height;
    let before = -Infinity;
    ctx.save();
    ctx.fillStyle = dashboard.color("muted");
    for (const { at } of releases) {
      const x = chart.valToPos(at, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width || x - before < TICKS_APART * devicePixelRatio) continue;
      ctx.fillRect(Math.round(x), bottom - 5 * devicePixelRatio, Math.max(1, devicePixelRatio), 5 * devicePixelRatio);
      before = x;
    }
    ctx.restore();
  };

  /** The release that is in force at a place. */
  function inForce(releases, at) {
    return releases.filter((release) => release.at <= at).pop() || releases[0];
  }

  function labelled(chart, releases, min, max) {
    if (!releases.length || !(max > min)) return [];
    const first = Math.max(Math.ceil(min), releases[0].at);
    const seen = [{ ...inForce(releases, first), at: first }, ...releases.filter(({ at }) => at > first && at <= max)];
    const scale = chart.bbox.width / devicePixelRatio / (max - min);
    chart.ctx.save();
    chart.ctx.font = FONT;
    let end = -Infinity;
    const kept = seen.filter(({ at, name }) => {
      const half = chart.ctx.measureText(name).width / 2;
      const x = (at - min) * scale;
      if (x - half < end + APART) return false;
      end = x + half;
      return true;
    });
    chart.ctx.restore();
    return kept;
  }
})();
