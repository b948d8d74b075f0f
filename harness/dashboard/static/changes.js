// All changes of the history.
"use strict";

dashboard.page(() => {
  const { el, format } = dashboard;
  const runs = dashboard.table(dashboard.store.get("runs"));
  const table = dashboard.table(dashboard.store.get("changes"));
  const at = (name) => (row) => table[name][row];
  const run = (number) => (number === null ? "a run that is gone" : dashboard.link("run.html", runs.key[number], format.time(runs.started[number])));
  dashboard.list(document.getElementById("content"), {
    caption: "Changes", noun: "change", sort: null,
    rows: Array.from({ length: table.rows }, (_, row) => row),
    search: (row) => `${table.case[row]} ${table.title[row]} ${table.suite[row]} ${table.toolchain_after[row]}`,
    filters: [
      { key: "suite", label: "Suite", value: at("suite") }, { key: "metric", label: "Metric", value: at("title") },
      { key: "cause", label: "Cause", value: at("cause") }, { key: "kind", label: "Kind", value: at("kind") },
      { key: "direction", label: "Direction", value: at("direction") }, { key: "toolchain", label: "Toolchain", value: at("role") },
      { key: "state", label: "State", value: at("state") },
    ],
    columns: [
      { key: "run", title: "First run", value: at("first_bad"), cell: (row) => run(table.first_bad[row]), falling: true },
      { key: "case", title: "Case", header: true, value: at("case"), cell: (row) => el("a", { href: `series.html?id=${table.series[row]}` }, dashboard.name(table.case[row], 120)) },
      { key: "metric", title: "Metric", value: at("title") },
      { key: "change", title: "Change", numeric: true, value: at("ratio"), cell: (row) => dashboard.moved(table.ratio[row], table.worse[row]) },
      { key: "level", title: "Level", class: "number", cell: (row) => format.level(table.before[row], table.after[row], table.unit[row]) },
      { key: "kind", title: "Kind", value: at("kind") },
      { key: "cause", title: "Cause", value: at("cause"), cell: (row) => dashboard.chip(table.cause[row], `cause-${table.cause[row]}`) },
      ...(table.state.some((state) => state !== "new") ? [{ key: "state", title: "State", value: at("state") }] : []),
    ],
    details: (row) => el("div", {}, table.said[row] && el("p", { class: "evidence" }, table.said[row]), el("p", { class: "evidence" }, table.evidence[row]), dashboard.facts([
      ["Toolchain", `${dashboard.cut(table.toolchain_before[row])} → ${dashboard.cut(table.toolchain_after[row])}`],
      ["Where (95 %)", el("span", {}, run(table.earliest[row]), " to ", run(table.latest[row]))],
      ["p", format.p(table.p[row])], ["Machine", dashboard.cut(table.machine_class[row])],
    ])),
  });
});
