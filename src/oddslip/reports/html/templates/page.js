"use strict";
(() => {
  const PAGE = 50;
  const at = (id) => document.getElementById(id);
  const data = JSON.parse(at("label-data").textContent);
  const values = data.values;
  const names = values.label;
  const lower = names.map((name) => name.toLowerCase());
  const collator = new Intl.Collator("en", { numeric: true });
  const everything = names.map((_, label) => label);
  const state = { key: "evaluation_positives", up: false, page: 0, shown: everything, sorted: everything };

  const make = (name, text, attributes = {}) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  const show = (value) => {
    if (value === null) return "–";
    if (value === true) return "yes";
    if (value === false) return "no";
    if (Number.isInteger(value)) return value.toLocaleString("en");
    const size = Math.abs(value);
    if (size !== 0 && (size < 0.001 || size >= 1e7)) return value.toExponential(2);
    return size >= 1000 ? value.toLocaleString("en", { maximumFractionDigits: 0 }) : value.toPrecision(3);
  };

  // What is not known stands last, whichever way the column is sorted; equals keep their order.
  const sort = () => {
    const column = values[state.key];
    const turn = state.up ? 1 : -1;
    const compare = state.key === "label" ? collator.compare : (a, b) => a - b;
    state.sorted = everything.slice().sort((a, b) => {
      const first = column[a], second = column[b];
      if (first === null || second === null) return (first === null) - (second === null) || a - b;
      return turn * compare(first, second) || a - b;
    });
  };

  const boxes = [...document.querySelectorAll("[data-only]")];
  const filter = () => {
    const words = at("search").value.trim().toLowerCase();
    const only = boxes.filter((box) => box.checked).map((box) => values[box.dataset.only]);
    state.shown = state.sorted.filter(
      (label) => lower[label].includes(words) && only.every((column) => column[label]),
    );
    state.page = 0;
  };

  const head = document.querySelector("#label-table thead");
  const body = document.querySelector("#label-table tbody");
  const render = () => {
    for (const cell of head.querySelectorAll("th")) {
      if (cell.dataset.key === state.key) cell.setAttribute("aria-sort", state.up ? "ascending" : "descending");
      else cell.removeAttribute("aria-sort");
    }
    const first = state.page * PAGE;
    const lines = state.shown.slice(first, first + PAGE).map((label) => {
      const line = make("tr");
      for (const { key } of data.columns) {
        const value = values[key][label];
        if (key === "label") line.append(make("th", value, { scope: "row", title: value }));
        else line.append(make("td", show(value), { class: value === false || value === null ? "number no" : "number" }));
      }
      return line;
    });
    body.replaceChildren(...lines);
    const n = state.shown.length;
    const count = (number) => number.toLocaleString("en");
    at("count").textContent = `${count(n)} of ${count(names.length)} labels` +
      (n ? `, ${count(first + 1)} to ${count(Math.min(n, first + PAGE))} shown` : "");
    const last = Math.max(0, Math.ceil(n / PAGE) - 1);
    at("page").textContent = `Page ${count(state.page + 1)} of ${count(last + 1)}`;
    at("previous").disabled = state.page === 0;
    at("next").disabled = state.page >= last;
  };

  const line = make("tr");
  for (const { key, heading, hint } of data.columns) {
    const cell = make("th", undefined, { scope: "col", class: key === "label" ? "" : "number", "data-key": key });
    const button = make("button", heading, { type: "button", title: hint });
    button.addEventListener("click", () => {
      state.up = state.key === key ? !state.up : key === "label";
      state.key = key;
      sort();
      filter();
      render();
    });
    cell.append(button);
    line.append(cell);
  }
  head.append(line);
  const again = () => { filter(); render(); };
  at("search").addEventListener("input", again);
  for (const box of boxes) {
    box.addEventListener("change", again);
    const column = values[box.dataset.only];
    if (!column || !column.some(Boolean)) box.disabled = true;
  }
  const turn = (step) => { state.page += step; render(); document.querySelector(".tall").scrollTop = 0; };
  at("previous").addEventListener("click", () => turn(-1));
  at("next").addEventListener("click", () => turn(1));

  // A spreadsheet runs a cell that starts like a formula, also behind what it does not show and
  // in full width; an apostrophe makes it text.
  const formula = /^[\s\u0000-\u001f\u007f-\u00a0\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/;
  const quote = (value) => {
    if (value === null) return "";
    let text = String(value);
    if (typeof value === "string" && formula.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const write = () => {
    const rows = [data.columns.map(({ key }) => key).join(",")];
    for (const label of state.shown) {
      rows.push(data.columns.map(({ key }) => {
        const raw = key === "label" ? data.raw[label] : undefined;
        return quote(raw === undefined ? values[key][label] : raw);
      }).join(","));
    }
    return rows.join("\r\n") + "\r\n";
  };
  at("download").addEventListener("click", () => {
    const url = URL.createObjectURL(new Blob([write()], { type: "text/csv;charset=utf-8" }));
    make("a", undefined, { href: url, download: "labels.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  });

  sort();
  filter();
  render();
  at("label-part").hidden = false;

  // Tooltips: a label's dot knows its number, any other mark its text.
  const tip = at("tip");
  const tell = (mark) => {
    if (mark.dataset.t) return mark.dataset.t;
    const label = Number(mark.dataset.i);
    const name = names[label].length > 80 ? `${names[label].slice(0, 80)}…` : names[label];
    return `${name}\nln w ${show(values.intended_shift[label])}, realized ${show(values.realized_shift[label])}`;
  };
  document.addEventListener("pointerover", (event) => {
    const mark = event.target instanceof Element && event.target.closest("[data-i], [data-t]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = tell(mark);
    const box = mark.getBoundingClientRect();
    const left = Math.min(box.right + 8, document.documentElement.clientWidth - tip.offsetWidth - 8);
    // The style attribute is forbidden by the page's policy; its object model is not.
    tip.style.left = `${Math.max(8, left) + window.scrollX}px`;
    tip.style.top = `${Math.max(0, box.top - tip.offsetHeight - 6) + window.scrollY}px`;
  });

  // On paper nothing can be opened, so everything is.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const part of opened) part.open = true;
  });
  window.addEventListener("afterprint", () => { for (const part of opened) part.open = false; });

  const theme = at("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  // The button says what a press gives.
  const name = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.title = `Show this page in ${isDark() ? "light" : "dark"} colours`;
  };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  system.addEventListener("change", name);
  name();
  theme.hidden = false;
})();
