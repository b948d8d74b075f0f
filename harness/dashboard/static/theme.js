// Light or dark, as the system has it or as the reader chose; in the head, so that no page flashes.
"use strict";

(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const print = matchMedia("print");

  function chosen() {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null; // no storage for pages on disk, in some browsers
    }
  }

  function apply(printing = print.matches) {
    const own = chosen();
    root.dataset.theme = printing ? "light" : own === "dark" || own === "light" ? own : system.matches ? "dark" : "light";
    const button = document.getElementById("theme");
    if (button) {
      button.setAttribute("aria-pressed", String(root.dataset.theme === "dark"));
      button.hidden = false;
    }
    document.dispatchEvent(new CustomEvent("themechange"));
  }

  function toggle() {
    const other = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("theme", other);
    } catch {
      root.dataset.theme = other;
      document.dispatchEvent(new CustomEvent("themechange"));
      return;
    }
    apply();
  }

  apply();
  system.addEventListener("change", () => apply());
  print.addEventListener("change", () => apply());
  addEventListener("beforeprint", () => apply(true));
  addEventListener("afterprint", () => apply(false));
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", toggle);
  });
})();
