// What the page of a series shows as text: its changes and all its points.
"use strict";

(() => {
  const { el, format } = dashboard;

  dashboard.causeChip = (cause) => dashboard.chip(cause, `cause-${cause}`);

  dashboard.changeCards = (changes, series, runs) => changes.map((change) => {
    const run = (number) => (number === null ? "a run that is gone" : dashboard.link("run.html", runs.key[number], format.time(runs.started[number])));
    const range = change.earliest === null || change.latest === null || change.earliest === change.latest ? "that run"
      : ["from ", run(change.earliest), " to ", run(change.latest)];
    const commits = !series.peer && change.toolchain_before !== change.toolchain_after && change.last_good !== null && change.first_bad !== null
      ? dashboard.commits(runs.revision[change.last_good] || "", runs.revision[change.first_bad] || "") : null;
    return el("article", { class: "change" },
      el("h3", {}, dashboard.moved(change.ratio, change.worse),
        ` ${change.kind}, `, run(change.first_bad), " ", dashboard.causeChip(change.cause)),
      change.said && el("p", { class: "evidence" }, change.said),
      el("p", { class: "evidence" }, change.evidence),
      dashboard.facts([
        ["Level", format.level(change.before, change.after, series.unit)],
        ["Toolchain", el("span", {}, dashboard.cut(change.toolchain_before), " → ", dashboard.cut(change.toolchain_after), commits && [" (", commits, ")"])],
        ["Harness", change.commits],
        [change.kind === "drift" ? "Began (95 %)" : "Where (95 %)", el("span", {}, range)],
        ["p", format.p(change.p)],
      ]),
      change.comparison
        ? el("p", {}, dashboard.link("comparison.html", change.comparison, "The comparison of the two runs around it"))
        : change.command && el("div", {}, el("p", {}, "To compare what was before it with what came after, side by side:"), dashboard.commands(change.command)));
  });

  dashboard.pointsTable = (place, series, points, runs) => {
    const rows = points.value.map((_, at) => at).reverse();
    const starts = new Map(series.changes.map((change) => [change.first_bad, change]));
    const ranged = points.low.some((value) => value !== null);
    dashboard.list(place, {
      caption: "All points, the newest first", noun: "point", rows,
      columns: [
        { key: "run", title: "Run", header: true, falling: true, value: (at) => at, cell: (at) => dashboard.link("run.html", runs.key[points.run[at]], format.time(runs.started[points.run[at]])) },
        { key: "toolchain", title: "Toolchain", value: (at) => points.toolchain[at] },
        { key: "value", title: series.title, numeric: true, value: (at) => points.value[at], cell: (at) => format.figure(points.value[at], series.unit) },
        ...(ranged ? [{ key: "range", title: series.unit === "ratio" ? "95 % interval" : "Fastest to slowest", class: "number",
          cell: (at) => (points.low[at] === null ? "-" : `${format.figure(points.low[at], series.unit)} to ${format.figure(points.high[at], series.unit)}`) }] : []),
        { key: "before", title: "To the one before", numeric: true, value: (at) => points.change[at], cell: (at) => format.change(points.change[at]) },
        { key: "module", title: "Module", value: (at) => (at ? points.new_module[at] : null), cell: (at) => (!at ? "-" : points.new_module[at] ? "another" : "the same") },
        { key: "found", title: "Change", value: (at) => (starts.has(points.run[at]) ? 0 : 1), cell: (at) => (starts.has(points.run[at]) ? starts.get(points.run[at]).kind : "") },
      ],
    });
  };
})();
