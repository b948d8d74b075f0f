// A run under many releases: its lines as a table, and one of them as a chart. The address tells line and release.
"use strict";

(() => {
  const { el, format } = dashboard;
  const LEAST = 25; // lines that are shown before a button shows all

  dashboard.runReleases = ({ releases, lines, points }) => {
    const table = dashboard.table(points);
    const at = (line, release) => line * releases.length + release;
    const anchor = (line, release) => `#${new URLSearchParams({ line: lines[line], metric: "latency", release: releases[release] })}`;
    const step = (place) => `${table.step[place]} from ${releases[table.since[place]]}`;

    const first = (line) => releases.find((_, release) => table.ratio[at(line, release)] !== null); // to which its ratios are

    function words(line, release) {
      const place = at(line, release);
      const ratio = table.ratio[place] === null ? [table.text[place], table.why[place]].filter(Boolean).join(": ")
        : `${format.figure(table.latency_ns[place], "ns")}, ${format.interval(table.ratio[place], table.low[place], table.high[place])} of that under ${first(line)}`;
      return dashboard.cut(`${lines[line]}, latency, ${releases[release]}: ${ratio}${table.step[place] ? `; ${step(place)}` : ""}`, 400);
    }

    function cell(line, release) {
      const place = at(line, release);
      const mark = table.step[place] ? (table.worse[place] ? "▲" : "▼") : "";
      return el("td", { class: `heat heat-${table.shade[place]}` }, el("a", { href: anchor(line, release) },
        `${mark}${table.shade[place] === "failed" ? "✗ " : ""}${table.text[place]} `, el("span", { class: "words" }, words(line, release))));
    }

    const row = (line) => el("tr", {}, el("th", { scope: "row" }, el("a", { href: anchor(line, releases.length - 1) }, dashboard.name(lines[line], 120))),
      releases.map((_, release) => cell(line, release)));
    const body = el("tbody", {}, lines.slice(0, LEAST).map((_, line) => row(line)));
    const place = document.getElementById("over");
    place.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Line"),
      releases.map((name) => el("th", { scope: "col", class: "number" }, dashboard.cut(name, 12))))), body));
    if (lines.length > LEAST) {
      const more = el("button", { type: "button", class: "more", onclick: () => {
        body.append(...lines.slice(LEAST).map((_, line) => row(line + LEAST)));
        more.remove();
      } }, `Show all ${format.count(lines.length, "line")}`);
      place.after(more);
    }

    function draw() {
      const asked = new URLSearchParams(location.hash.slice(1));
      const line = Math.max(lines.indexOf(asked.get("line")), 0);
      const places = releases.map((_, release) => at(line, release));
      const own = (column) => places.map((place) => table[column][place]);
      const steps = places.flatMap((place, release) => (table.step[place] ? [{ at: release, from: table.since[place] + 1, to: release }] : []));
      document.getElementById("line-title").replaceChildren(dashboard.name(lines[line], 200), el("span", { class: "of" }, ", latency"));
      const { moves } = dashboard.chart(document.getElementById("line"), {
        label: `Latency of ${dashboard.cut(lines[line], 80)} over releases, as a ratio to the first`, unit: "ratio",
        days: releases.map((name, release) => `${table.shade[places[release]] === "failed" ? "✗ " : ""}${dashboard.cut(name, 12)}`),
        lines: [{ label: "ratio", values: own("ratio"), color: "line" }], band: { low: own("low"), high: own("high") },
        marks: steps, mode: "all", scales: false,
        read: (release) => el("p", {}, words(line, release)),
      });
      if (releases.includes(asked.get("release"))) moves.go(releases.indexOf(asked.get("release")));
      return asked.has("line");
    }

    document.getElementById("over-part").hidden = false;
    addEventListener("hashchange", () => draw() && document.getElementById("line-title").scrollIntoView({ block: "nearest" }));
    if (draw()) document.getElementById("over-part").scrollIntoView();
  };
})();
