// A table that is filtered, sorted and unfolded; its state lives in the address, so that a view can be linked to.
"use strict";

(() => {
  const AT_ONCE = 200;
  const { el } = dashboard;

  /**
   * columns: [{ key, title, value(row), cell(row), numeric, falling, header }]; `value` is what it is sorted by, and
   * `falling` ones begin with the largest, as numeric ones do.
   * filters: [{ key, label, value(row), fixed }]; choices are the values that there are.
   * search(row): the text that words are looked for in. details(row): what an unfolded row shows.
   * sort: `key`, or `-key` for the largest first; null leaves the order. shown(rows): called after each change.
   */
  dashboard.list = (place, { caption, columns, rows, filters = [], search = null, details = null, sort = null, shown = null, noun = "row" }) => {
    const state = { sort, all: false, chosen: new Map(), words: "" };
    const folded = new Map();
    const texts = search && rows.map((row) => search(row).toLowerCase());
    const index = new Map(rows.map((row, at) => [row, at]));
    const controls = filters.map((filter) => select(filter, rows, change));
    const input = search && el("input", { type: "search", "aria-label": "Find", autocomplete: "off", spellcheck: "false", oninput: change });
    const told = el("p", { class: "told", role: "status" });
    const body = el("tbody");
    const heads = columns.map((column) => head(column, by));
    const more = el("button", { type: "button", class: "more", onclick: () => { state.all = true; draw(); } });
    const unfold = details ? [el("th", { scope: "col", class: "unfold" }, el("span", { class: "hidden" }, "Details"))] : [];
    place.replaceChildren(
      el("div", { class: "controls" },
        input && el("label", { class: "search" }, "Find", input),
        controls.map(({ label }) => label)),
      told,
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
        el("table", {}, el("caption", { class: "hidden" }, caption), el("thead", {}, el("tr", {}, unfold, heads.map(({ cell }) => cell))), body)),
      more,
    );

    function change() {
      state.words = input ? input.value : "";
      for (const { key, control } of controls) state.chosen.set(key, control.value);
      state.all = false;
      keep();
      draw();
    }

    function by(key) {
      const { numeric, falling } = columns.find((column) => column.key === key);
      const [first, second] = numeric || falling ? [`-${key}`, key] : [key, `-${key}`];
      state.sort = state.sort === first ? second : first;
      keep();
      draw();
    }

    function keep() {
      const hash = new URLSearchParams();
      if (state.words) hash.set("find", state.words);
      for (const { key, otherwise } of controls) if (state.chosen.get(key) !== otherwise) hash.set(key, state.chosen.get(key));
      if (state.sort && state.sort !== sort) hash.set("sort", state.sort);
      const text = hash.toString();
      history.replaceState(null, "", text ? `#${text}` : `${location.pathname}${location.search}`);
    }

    function recall() {
      const hash = new URLSearchParams(location.hash.slice(1));
      if (input) input.value = state.words = hash.get("find") || "";
      for (const { key, control, otherwise } of controls) {
        control.value = hash.has(key) ? hash.get(key) : otherwise;
        if (control.selectedIndex < 0) control.value = "";
        state.chosen.set(key, control.value);
      }
      const key = (hash.get("sort") || "").replace(/^-/, "");
      state.sort = columns.some((column) => column.key === key) ? hash.get("sort") : sort;
      draw();
    }

    function kept() {
      const words = state.words.toLowerCase().split(/\s+/).filter(Boolean);
      const found = rows.filter((row) =>
        controls.every(({ key, value }) => !state.chosen.get(key) || String(value(row)) === state.chosen.get(key)) &&
        words.every((word) => texts[index.get(row)].includes(word)));
      const key = (state.sort || "").replace(/^-/, "");
      const column = columns.find((candidate) => candidate.key === key);
      if (!column) return found;
      const sign = state.sort.startsWith("-") ? -1 : 1;
      return found.map((row) => [column.value(row), row]).sort(([a], [b]) => compare(a, b, sign)).map(([, row]) => row);
    }

    function draw() {
      const found = kept();
      const drawn = state.all ? found : found.slice(0, AT_ONCE);
      body.replaceChildren(...drawn.flatMap(line));
      told.textContent = found.length === rows.length
        ? dashboard.format.count(rows.length, noun)
        : `${dashboard.format.whole(found.length)} of ${dashboard.format.count(rows.length, noun)}`;
      more.hidden = drawn.length === found.length;
      more.textContent = `Show all ${dashboard.format.whole(found.length)}`;
      for (const { key, cell, sorts } of heads) {
        if (!sorts) continue;
        cell.setAttribute("aria-sort", state.sort === key ? "ascending" : state.sort === `-${key}` ? "descending" : "none");
      }
      if (shown) shown(drawn, found);
    }

    function line(row) {
      const cells = columns.map((column) => {
        const content = column.cell ? column.cell(row) : column.value(row);
        return el(column.header ? "th" : "td", { scope: column.header ? "row" : null, class: column.class || (column.numeric ? "number" : null) },
          content === null || content === undefined ? "-" : content instanceof Node || Array.isArray(content) ? content : String(content));
      });
      if (!details) return [el("tr", {}, cells)];
      const open = folded.has(row);
      const button = el("button", { type: "button", "aria-expanded": String(open), "aria-label": "Details" }, el("span", { "aria-hidden": "true" }, "▸"));
      const main = el("tr", {}, el("td", { class: "unfold" }, button), cells);
      button.addEventListener("click", () => {
        if (folded.has(row)) {
          folded.get(row).remove();
          folded.delete(row);
        } else {
          folded.set(row, unfolded(row));
          main.after(folded.get(row));
        }
        button.setAttribute("aria-expanded", String(folded.has(row)));
      });
      return open ? [main, folded.get(row)] : [main];
    }

    function unfolded(row) {
      return el("tr", { class: "details" }, el("td", { colspan: columns.length + 1 }, details(row)));
    }

    addEventListener("hashchange", recall);
    recall();
    return { redraw: draw };
  };

  function head(column, by) {
    if (!column.value) return { key: column.key, sorts: false, cell: el("th", { scope: "col", class: column.class }, column.title) };
    const button = el("button", { type: "button", onclick: () => by(column.key) }, column.title);
    return { key: column.key, sorts: true, cell: el("th", { scope: "col", class: column.numeric ? "number" : null }, button) };
  }

  function select({ key, label, value, otherwise = "" }, rows, change) {
    const counts = new Map();
    for (const row of rows) counts.set(String(value(row)), (counts.get(String(value(row))) || 0) + 1);
    const options = [...counts.keys()].filter(Boolean).sort()
      .map((choice) => el("option", { value: choice }, `${dashboard.cut(choice, 60)} (${counts.get(choice)})`));
    const control = el("select", { onchange: change, "aria-label": label }, el("option", { value: "" }, "all"), options);
    return { key, value, control, label: el("label", { hidden: options.length < 2 }, label, control), otherwise: counts.has(otherwise) ? otherwise : "" };
  }

  function compare(a, b, sign) {
    const missing = (value) => value === null || value === undefined || Number.isNaN(value);
    if (missing(a) || missing(b)) return missing(a) - missing(b); // last, in either order
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return sign * String(a).localeCompare(String(b), "en", { numeric: true });
  }
})();
