// The list of all runs.
"use strict";

dashboard.page(() => {
  const { el, format } = dashboard;
  const runs = dashboard.table(dashboard.store.get("runs"));
  const at = (column) => (row) => runs[column][row];
  const whole = (column) => ({ numeric: true, value: at(column), cell: (row) => format.whole(runs[column][row]) });
  const bad = (column) => ({ ...whole(column), cell: (row) => (runs[column][row] ? el("span", { class: "worse" }, format.whole(runs[column][row])) : "0") });
  dashboard.list(document.getElementById("content"), {
    caption: "Runs", noun: "run", sort: "-started",
    rows: Array.from({ length: runs.rows }, (_, row) => row),
    search: (row) => ["run", "suite", "toolchain", "revision", "machine_class", "harness_commit"].map((column) => runs[column][row]).join(" "),
    filters: [{ key: "suite", label: "Suite", value: at("suite") }, { key: "machine", label: "Machine", value: at("machine_class") }],
    columns: [
      { key: "started", title: "Started (UTC)", falling: true, header: true, value: (row) => row, cell: (row) => dashboard.link("run.html", runs.key[row], format.time(runs.started[row])) },
      { key: "suite", title: "Suite", value: at("suite"), cell: (row) => dashboard.cut(runs.suite[row], 60) },
      { key: "toolchain", title: "Toolchain", value: at("toolchain"), cell: (row) => dashboard.cut(runs.toolchain[row], 60) },
      { key: "reference", title: "Reference", value: at("reference"), cell: (row) => dashboard.cut(runs.reference[row] || "-", 60) },
      { key: "cases", title: "Cases", ...whole("cases") },
      { key: "measured", title: "Measured", ...whole("measured") },
      { key: "failed", title: "Failed", ...bad("failed") },
      { key: "missing", title: "Missing", ...bad("missing") },
      { key: "noise", title: "Noise", numeric: true, value: at("noise"), cell: (row) => format.share(runs.noise[row]) },
      { key: "machine", title: "Machine", value: at("machine_class"), class: "wrap", cell: (row) => dashboard.cut(runs.machine_class[row], 60) },
    ],
  });
});
