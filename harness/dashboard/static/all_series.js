// The list of all series.
"use strict";

dashboard.page(() => {
  const { el, format } = dashboard;
  const { runs, names, table } = dashboard.everySeries();
  const name = (column) => (row) => names[column][table.name[row]];
  const at = (column) => (row) => table[column][row];
  const engine = (row) => names.peer[table.name[row]] || "IREE";
  // Of one case, latency comes first.
  const rows = Array.from({ length: table.rows }, (_, row) => row)
    .sort((a, b) => (table.metric[b] === "latency") - (table.metric[a] === "latency") || (table.title[a] < table.title[b] ? -1 : 1));
  dashboard.list(document.getElementById("content"), {
    caption: "Series", noun: "series", sort: "case", rows,
    search: (row) => `${name("case")(row)} ${table.title[row]} ${table.metric[row]} ${name("suite")(row)} ${table.machine[row]}`,
    filters: [
      { key: "suite", label: "Suite", value: name("suite") }, { key: "metric", label: "Metric", value: at("title") },
      { key: "device", label: "Device", value: name("device") }, { key: "model", label: "Model", value: name("model") },
      { key: "engine", label: "Engine", value: engine }, { key: "machine", label: "Machine", value: at("machine") },
      { key: "toolchain", label: "Toolchain", value: at("role"), otherwise: "newest" },
      { key: "changes", label: "Changes", value: (row) => (table.changes[row] ? "with changes" : "without changes") },
    ],
    columns: [
      { key: "case", title: "Case", header: true, value: name("case"), cell: (row) =>
        el("a", { href: `series.html?id=${table.key[row]}` }, dashboard.name(name("case")(row), 120)) },
      { key: "metric", title: "Metric", value: at("title") },
      { key: "course", title: "Course", class: "course", cell: (row) => dashboard.spark(table.spark[row]) },
      { key: "last", title: "Latest", numeric: true, value: at("value"), cell: (row) => format.figure(table.value[row], table.unit[row]) },
      { key: "change", title: "Last change", numeric: true, value: at("change"), cell: (row) => (table.changes[row] ? dashboard.moved(table.change[row], table.worse[row]) : "-") },
      { key: "when", title: "When", value: at("change_run"), falling: true, cell: (row) => (table.changes[row] ? format.day(runs.started[table.change_run[row]]) : "-") },
      { key: "toolchain", title: "Toolchain", value: (row) => table.toolchain[row] },
      { key: "run", title: "Last run", falling: true, value: at("run"), cell: (row) => format.day(runs.started[table.run[row]]) },
      { key: "points", title: "Points", numeric: true, value: at("points") },
    ],
  });
});
