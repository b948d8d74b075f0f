// Elements of a page, made of values: a text is always a text, never markup.
"use strict";

(() => {
  const LONGEST = 200;

  /** An element with attributes and children; a string child becomes a text. */
  dashboard.el = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else element.setAttribute(key, value === true ? "" : String(value));
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
    return element;
  };

  dashboard.svg = (name, attributes = {}, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
    element.append(...children);
    return element;
  };

  // Line ends and other controls, and those that turn the direction of all text behind them.
  const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\s]+/g;

  /** A text on one line, cut to a length that a table can hold. */
  dashboard.cut = (text, longest = LONGEST) => {
    const line = String(text).slice(0, longest * 4).replace(UNSEEN, " ");
    return line.length <= longest && text.length <= longest * 4 ? line : `${line.slice(0, longest - 1)}…`;
  };

  /** A name as code, isolated from the direction of the text around it. */
  dashboard.name = (text, longest) => dashboard.el("bdi", { class: "name" }, dashboard.cut(text, longest));

  dashboard.link = (page, key, ...children) => dashboard.el("a", { href: `${page}?id=${key}` }, ...children);

  /** A link to the commits between two revisions of IREE, where both are ones. */
  dashboard.commits = (before, after) => {
    const hash = /^[0-9a-f]{7,40}$/;
    if (!hash.test(before) || !hash.test(after) || before === after) return null;
    const href = `https://github.com/iree-org/iree/compare/${before}...${after}`;
    return dashboard.el("a", { href, rel: "noreferrer" }, "commits between them");
  };

  /** Command lines with a button that copies them. */
  dashboard.commands = (text, label = "Copy") => {
    const block = dashboard.el("pre", { tabindex: 0 }, text);
    const button = dashboard.el("button", { type: "button", class: "copy", onclick: () => copy(text, block, button) }, label);
    return dashboard.el("div", { class: "commands" }, block, button);
  };

  function copy(text, block, button) {
    const told = (word) => {
      button.textContent = word;
      setTimeout(() => (button.textContent = "Copy"), 1500);
    };
    const byHand = () => {
      getSelection().selectAllChildren(block);
      told(document.execCommand("copy") ? "Copied" : "Selected");
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => told("Copied"), byHand);
    else byHand();
  }

  /** By how much a level moved, and whether that is worse; there is no ratio to nothing. */
  dashboard.moved = (ratio, worse) => dashboard.el("span", { class: worse ? "worse" : "better" },
    `${worse ? "▲" : "▼"} ${ratio === null ? "from nothing" : dashboard.format.change(ratio)}`);

  /** Facts as a list of terms. */
  dashboard.facts = (pairs) => dashboard.el(
    "dl", { class: "facts" },
    pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined)
      .map(([term, value]) => dashboard.el("div", {}, dashboard.el("dt", {}, term), dashboard.el("dd", {}, value))),
  );

  const STATUS_MARKS = { measured: "", same: "=", skipped: "" };

  /** A word in a frame, with a mark, so that colour never carries the meaning alone. */
  dashboard.chip = (word, kind = word) => {
    const marks = { ...dashboard.store.get("rules").marks, ...STATUS_MARKS }; // of report/verdicts.py
    const mark = Object.hasOwn(marks, word) ? marks[word] : "";
    return dashboard.el("span", { class: `chip chip-${kind.replace(/[^a-z]+/g, "-")}` }, mark ? `${mark} ${word}` : word);
  };

  dashboard.title = (text) => {
    document.title = `${dashboard.cut(text, 80)} - ${document.title.split(" - ").pop()}`;
  };
})();
