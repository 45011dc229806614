"use strict";
// Filters the tests that the page has already. Without this script the page is a plain list.
(() => {
  const form = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const tests = [...document.querySelectorAll("details.test")];
  const key = (test) => test.dataset.kinds.split(" ");

  function apply() {
    const kind = form.elements.kind.value;
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const test of tests) {
      const text = test.dataset.text;
      const fits = (kind === "all" || key(test).includes(kind)) && words.every((word) => text.includes(word));
      test.hidden = !fits;
      count += fits;
    }
    shown.textContent = `${count} of ${tests.length} tests`;
  }

  function reveal() {
    const id = location.hash.slice(1);
    const found = id && (document.getElementById(id) || document.getElementById(decodeURIComponent(id)));
    if (!found) return;
    const test = found.closest("details.test");
    if (!test) return;
    if (test.hidden) {
      form.reset();
      apply();
    }
    test.open = true;
    found.scrollIntoView();
  }

  function open(all) {
    for (const test of tests) if (!test.hidden) test.open = all;
  }

  function save() {
    const link = document.createElement("a");
    const data = document.getElementById("data").textContent;
    link.href = URL.createObjectURL(new Blob([data], { type: "application/json" }));
    link.download = "dynacheck.json";
    link.click();
    URL.revokeObjectURL(link.href);
  }

  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("open").addEventListener("click", () => open(true));
  document.getElementById("close").addEventListener("click", () => open(false));
  document.getElementById("save").addEventListener("click", save);
  window.addEventListener("hashchange", reveal);
  apply();
  reveal();
})();
