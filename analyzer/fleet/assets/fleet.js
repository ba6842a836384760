"use strict";
// Sorting and filtering of the table of runs. Without script the page still shows everything.
(() => {
  const table = document.querySelector("table.runs");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const count = document.querySelector("#count");
  const words = document.querySelector("#filter");
  const choices = [...document.querySelectorAll("select[data-column]")];

  const value = (row, i) => {
    const cell = row.cells[i];
    return cell.dataset.value !== undefined ? Number(cell.dataset.value) : cell.textContent.trim().toLowerCase();
  };
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = wanted.every((w) => text.includes(w)) && choices.every(
        (c) => !c.value || row.cells[Number(c.dataset.column)].textContent.trim() === c.value);
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    count.textContent = `${shown} of ${rows.length} runs`;
  };
  words.addEventListener("input", filter);
  for (const c of choices) c.addEventListener("change", filter);

  [...table.tHead.rows[0].cells].forEach((head, i) => {
    const button = head.querySelector("button");
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sign = down ? -1 : 1;
      const blank = (v) => v === "" || Number.isNaN(v);
      rows.sort((a, b) => {
        const x = value(a, i), y = value(b, i);
        if (blank(x) || blank(y)) return blank(x) - blank(y);
        return sign * (x < y ? -1 : x > y ? 1 : 0);
      });
      body.append(...rows);
    });
  });

  for (const bar of document.querySelectorAll("[data-cause]")) {
    bar.addEventListener("click", () => { words.value = bar.dataset.cause; filter(); words.scrollIntoView({block: "center"}); });
  }
  filter();
})();
