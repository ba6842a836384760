"use strict";
// Sorting and filtering of the table of runs. Without script the page still shows everything.
(() => {
  const table = document.querySelector("table.runs");
  if (!table) return;
  const body = table.tBodies[0];
  // All rows are sorted and filtered; only so many are laid out, since a browser needs seconds for 20,000.
  const MOST = 1000;
  const rows = [...body.rows];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const count = document.querySelector("#count");
  const words = document.querySelector("#filter");
  const choices = [...document.querySelectorAll("select[data-column]")];

  const value = (row, i) => {
    const cell = row.cells[i];
    return cell.dataset.value !== undefined ? Number(cell.dataset.value) : cell.textContent.trim().toLowerCase();
  };
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter((row) => {
      const text = texts.get(row);
      return wanted.every((w) => text.includes(w)) && choices.every(
        (c) => !c.value || row.cells[Number(c.dataset.column)].textContent.trim() === c.value);
    });
    body.replaceChildren(...found.slice(0, MOST));
    const cut = found.length > MOST ? `, the first ${MOST} listed` : "";
    count.textContent = `${found.length} of ${rows.length} runs${cut}`;
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
      const values = new Map(rows.map((row) => [row, value(row, i)]));
      rows.sort((a, b) => {
        const x = values.get(a), y = values.get(b);
        if (blank(x) || blank(y)) return blank(x) - blank(y);
        return sign * (x < y ? -1 : x > y ? 1 : 0);
      });
      filter();
    });
  });

  for (const bar of document.querySelectorAll("[data-cause]")) {
    bar.addEventListener("click", () => { words.value = bar.dataset.cause; filter(); words.scrollIntoView({block: "center"}); });
  }
  filter();
})();
