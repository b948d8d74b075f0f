// The page of one series.
"use strict";

dashboard.page(async () => {
  const { el, format } = dashboard;
  const id = dashboard.id();
  if (!id) throw new Error("the address of this page names nothing that there can be");
  const series = await dashboard.load(`series/${id}`);
  const runs = dashboard.table(dashboard.store.get("runs"));
  const points = pointsOf(series, runs);
  const references = (await Promise.all(series.references.map((key) => dashboard.load(`series/${key}`).catch(() => null)))).filter(Boolean);
  const last = points.rows - 1;

  const under = series.role === "newest" ? "" : ` under IREE ${dashboard.cut(points.toolchain[last], 80)}`;
  dashboard.title(`${series.case} ${series.title.toLowerCase()}${under}`);
  document.getElementById("heading").replaceChildren(dashboard.name(series.case, 10000), el("span", { class: "of" }, `${series.title}${under}`));
  document.getElementById("facts").replaceChildren(dashboard.facts([
    ["Latest", `${format.figure(points.value[last], series.unit)}${series.unit === "bytes" ? ` (${format.whole(points.value[last])} bytes)` : ""} with ${points.toolchain[last]}`],
    ["Suite", dashboard.cut(series.suite)], ["Model", dashboard.name(series.model)], ["Variant", dashboard.name(series.variant)],
    ["Device", dashboard.name(series.device)], ["Engine", series.peer], ["Machine", dashboard.cut(series.machine_class)],
    ["Toolchain is", { newest: "each run's newest", reference: "the fixed reference", other: "fixed, neither newest nor reference" }[series.role]],
    ["Points", `${format.whole(points.rows)}, ${format.day(runs.started[points.run[0]])} to ${format.day(runs.started[points.run[last]])}`],
  ]));

  const place = (run) => points.place.get(run);
  const marks = series.changes.filter((change) => place(change.first_bad) !== undefined).map((change) => ({
    at: place(change.first_bad), from: place(change.earliest) ?? place(change.first_bad), to: place(change.latest) ?? place(change.first_bad), until: place(change.until) ?? place(change.first_bad), change,
  }));
  const ranged = points.low.some((value) => value !== null);
  const { moves } = dashboard.chart(document.getElementById("chart"), {
    label: `${series.title} of ${dashboard.cut(series.case, 80)}`,
    unit: series.unit,
    exact: series.exact,
    days: format.days(points.run.map((run) => runs.started[run])),
    releases: dashboard.releases(points),
    lines: [{ label: series.title, values: points.value, color: "line" }, ...references.map((reference) => referenceLine(reference, runs, points))],
    band: ranged ? { low: points.low, high: points.high } : null,
    marks, levels: levelsOf(marks, last),
    open: (at) => { location.href = `run.html?id=${runs.key[points.run[at]]}`; },
    read: (at) => readout(at, series, points, runs, marks),
  });
  const asked = new URLSearchParams(location.hash.slice(1)); // `release=3.12.0`, of its first run or of that in `run=`
  const askedAt = points.run.findIndex((run, at) => points.toolchain[at] === asked.get("release") && (!asked.has("run") || runs.run[run] === asked.get("run")));
  if (askedAt >= 0) moves.go(askedAt);
  document.getElementById("legend").replaceChildren(...[
    ["key-line", series.role === "reference" ? "the reference toolchain" : "one point a run"],
    ranged && ["key-band", series.unit === "ratio" ? "95 % interval" : "fastest to slowest generation"],
    references.length && ["key-reference", "the same case with the reference toolchain: what moves both is the machine"],
    ["key-release", "below the days: each release of the toolchain, or build of it, at its first run"],
    marks.length && ["key-mark", "where a change lies, 95 % range"], marks.length && ["key-level", "levels"],
  ].filter(Boolean).map(([kind, text]) => el("li", {}, el("span", { class: `key ${kind}`, "aria-hidden": "true" }), text)));

  document.getElementById("changes").replaceChildren(...(series.changes.length
    ? dashboard.changeCards([...series.changes].reverse(), series, runs) : [el("p", { class: "quiet" }, points.rows < 8
      ? "Too few points to find a change in." : "No step and no drift was found.")]));
  if (series.repro) document.getElementById("repro").replaceChildren(dashboard.commands(series.repro));
  else document.getElementById("repro-part").hidden = true;
  dashboard.pointsTable(document.getElementById("points"), series, points, runs);
  dashboard.load("series").then((all) => others(all, series, id));

  function pointsOf({ points: packed }, allRuns) {
    const table = dashboard.table(packed);
    const { value, run } = table;
    return {
      ...table,
      toolchain: table.toolchain || run.map((number) => allRuns.toolchain[number]),
      revision: table.revision || run.map((number) => allRuns.revision[number]),
      change: value.map((figure, at) => (at && value[at - 1] ? figure / value[at - 1] : null)),
      place: new Map(run.map((number, at) => [number, at])),
    };
  }

  function referenceLine(reference, allRuns, own) {
    const values = new Array(own.rows).fill(null);
    const table = dashboard.table(reference.points);
    table.run.forEach((run, at) => {
      if (own.place.has(run)) values[own.place.get(run)] = table.value[at];
    });
    return { label: "reference", values, color: "reference", width: 1.25, points: false };
  }

  /** Levels before, between and after changes; a drift goes from one to the other while it lasts. */
  function levelsOf(found, end) {
    const levels = [];
    found.forEach(({ at, until, change }, number) => {
      if (!number) levels.push({ from: 0, to: at - 1, before: change.before, after: change.before });
      if (until > at) levels.push({ from: at, to: until, before: change.before, after: change.after });
      const next = number + 1 < found.length ? found[number + 1].at - 1 : end;
      levels.push({ from: until, to: next, before: change.after, after: change.after });
    });
    return levels;
  }

  function readout(at, shown, all, allRuns, found) {
    const run = all.run[at];
    const here = found.find(({ from, to }) => at >= from && at <= to);
    return dashboard.facts([
      ["Run", dashboard.link("run.html", allRuns.key[run], format.time(allRuns.started[run]))],
      [shown.title, el("strong", {}, format.figure(all.value[at], shown.unit))],
      [shown.unit === "ratio" ? "95 % interval" : "Fastest to slowest", all.low[at] === null ? "" : `${format.figure(all.low[at], shown.unit)} to ${format.figure(all.high[at], shown.unit)}`],
      ["To the one before", at ? format.change(all.change[at]) : ""],
      ["Module", !at ? "" : all.new_module[at] ? "another than before" : "the same as before"],
      ["Toolchain", dashboard.cut(all.revision[at] ? `${all.toolchain[at]} (${format.commit(all.revision[at])})` : all.toolchain[at])],
      ["Machine", dashboard.cut([allRuns.machine[run], allRuns.kernel[run] && `kernel ${allRuns.kernel[run]}`].filter(Boolean).join(", "))],
      ["Load", allRuns.load_1min[run] === null ? "" : allRuns.load_1min[run].toFixed(2)],
      ["Harness", dashboard.cut([allRuns.harness_version[run], format.commit(allRuns.harness_commit[run])].filter(Boolean).join(" "))],
      ["Clock", allRuns.clock[run] || ""],
      ["Change", here ? `${here.change.kind} of ${here.change.ratio === null ? "something from nothing" : format.change(here.change.ratio)}, ${here.change.cause}` : ""],
    ]);
  }

  function others(all, shown, own) {
    const names = dashboard.table(all.names);
    const table = dashboard.table(all.series);
    const links = [];
    for (let at = 0; at < table.rows; at++) {
      const name = table.name[at];
      if (names.case[name] !== shown.case || names.suite[name] !== shown.suite || table.key[at] === own) continue;
      const words = [table.title[at], table.role[at] === shown.role ? "" : table.role[at], table.machine[at] === shown.machine_class ? "" : table.machine[at]];
      links.push(el("li", {}, dashboard.link("series.html", table.key[at], dashboard.cut(words.filter(Boolean).join(", "), 120)), " ", dashboard.spark(table.spark[at])));
    }
    document.getElementById("others-part").hidden = !links.length;
    document.getElementById("others").replaceChildren(...links);
  }
});
