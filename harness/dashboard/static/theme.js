// Light or dark, as the system has it or as the reader chose; in the head, so that no page flashes.
"use strict";

(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const print = matchMedia("print");

  let kept = null; // where there is no storage, as for pages on disk in some browsers

  function chosen() {
    try {
      return localStorage.getItem("theme") || kept;
    } catch {
      return kept;
    }
  }

  function apply(printing = print.matches) {
    const own = chosen();
    root.dataset.theme = printing ? "light" : own === "dark" || own === "light" ? own : system.matches ? "dark" : "light";
    const button = document.getElementById("theme");
    if (button) {
      button.textContent = root.dataset.theme === "dark" ? "Light theme" : "Dark theme"; // what it leads to
      button.hidden = false;
    }
    document.dispatchEvent(new CustomEvent("themechange"));
  }

  function toggle() {
    kept = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("theme", kept);
    } catch {
      // It lasts as long as the page.
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
