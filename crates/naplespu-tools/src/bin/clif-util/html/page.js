(() => {
  "use strict";
  const panel = document.getElementById("panel");
  const hint = panel.innerHTML;
  const el = (id) => document.getElementById(id);
  const ids = (row, key) => (row.dataset[key] ? row.dataset[key].split(" ") : []);
  const kind = (row) => row.id.replace(/^f\d+/, "")[0];

  // Reverse references: from the id of a row to the rows that refer to it.
  const back = new Map();
  for (const row of document.querySelectorAll(".r[id]")) {
    for (const key of ["c", "o", "v"]) {
      for (const id of ids(row, key)) {
        if (!back.has(id)) back.set(id, []);
        back.get(id).push(row);
      }
    }
  }
  const users = (id) => back.get(id) || [];

  // The rows that correspond to a row, in all columns.
  const related = (row) => {
    const found = new Set();
    const machine = (r) => { found.add(r); const other = el(r.dataset.x); if (other) found.add(other); };
    const down = (o) => { found.add(o); users(o.id).forEach((r) => (kind(r) === "v" ? found.add(r) : machine(r))); };
    const up = (o) => { if (!o) return; found.add(o); ids(o, "c").map(el).forEach((c) => c && found.add(c)); };
    if (kind(row) === "b") row = el(row.dataset.x);
    switch (kind(row)) {
      case "a":
        machine(row);
        ids(row, "v").forEach((id) => el(id) && found.add(el(id)));
        ids(row, "o").forEach((id) => up(el(id)));
        break;
      case "v":
        found.add(row);
        users(row.id).forEach(machine);
        ids(row, "o").forEach((id) => up(el(id)));
        break;
      case "o":
        down(row);
        up(row);
        break;
      default:
        found.add(row);
        users(row.id).forEach(down);
    }
    return found;
  };

  const make = (tag, text, name) => {
    const node = document.createElement(tag);
    if (text) node.textContent = text;
    if (name) node.className = name;
    return node;
  };
  const copy = (id) => { const node = el(id).cloneNode(true); node.removeAttribute("id"); return node; };
  const cost = (row) => (row.dataset.n ? `executed ${row.dataset.n} times, ${row.dataset.cy} cycles` + (row.dataset.w ? `: ${row.dataset.w}` : "") : "");
  const code = (row) => row.querySelector(".txt").textContent.trim();

  const describeOne = (row) => {
    const two = make("div", "", "two");
    const left = make("div");
    left.append(make("h4", code(row), "mono"));
    if (cost(row)) left.append(make("p", cost(row)));
    if (row.dataset.t) left.append(copy(row.dataset.t));
    const right = make("div");
    if (row.dataset.m) right.append(make("h4", row.dataset.m));
    ids(row, "r").forEach((id, number) => {
      if (number) right.append(make("div", "invoked by", "hint"));
      right.append(copy(id));
    });
    two.append(left, right);
    panel.replaceChildren(two);
  };
  const describeMany = (row, rows) => {
    const machine = rows.filter((r) => kind(r) === "a");
    if (machine.length === 1) return describeOne(machine[0]);
    const cycles = machine.reduce((sum, r) => sum + Number(r.dataset.cy || 0), 0);
    const head = make("h4", row.textContent.trim(), "mono");
    const sum = make("p", machine.length === 0 ? "no machine instruction corresponds to it" : `${machine.length} machine instructions${cycles ? `, ${cycles} cycles` : ""}`);
    const list = make("div");
    machine.slice(0, 40).forEach((r) => {
      const line = make("div", "", "mono");
      line.append(make("span", code(r)), make("span", r.dataset.y, "place"));
      list.append(line);
    });
    panel.replaceChildren(head, sum, list);
  };

  // The bytes scroll with their instructions.
  for (const grid of document.querySelectorAll(".grid")) {
    const [asm, bytes] = [".asm .pane", ".bytes .pane"].map((name) => grid.querySelector(name));
    const follow = (one, other) => one.addEventListener("scroll", () => { if (other.scrollTop !== one.scrollTop) other.scrollTop = one.scrollTop; });
    follow(asm, bytes);
    follow(bytes, asm);
  }

  let pinned = null;
  let shown = null;
  const clear = () => document.querySelectorAll(".hot").forEach((r) => r.classList.remove("hot", "self"));
  const show = (row) => {
    if (shown === row) return;
    shown = row;
    clear();
    if (!row) { panel.innerHTML = hint; return; }
    const rows = [...related(row)];
    rows.forEach((r) => r.classList.add("hot"));
    row.classList.add("self");
    const mine = row.closest(".pane");
    for (const pane of row.closest(".grid").querySelectorAll(".pane")) {
      const hot = rows.filter((r) => pane.contains(r));
      const inside = (r) => r.offsetTop >= pane.scrollTop + pane.offsetTop && r.offsetTop + r.offsetHeight <= pane.scrollTop + pane.offsetTop + pane.clientHeight;
      if (pane !== mine && hot.length && !hot.some(inside)) {
        hot.sort((a, b) => a.offsetTop - b.offsetTop);
        pane.scrollTop = hot[0].offsetTop - pane.offsetTop - pane.clientHeight / 3;
      }
    }
    const machine = kind(row) === "a" ? row : kind(row) === "b" ? el(row.dataset.x) : null;
    if (machine) describeOne(machine); else describeMany(row, rows);
  };
  const rowOf = (event) => (event.target.closest ? event.target.closest(".r[id]") : null);
  document.addEventListener("pointerover", (event) => {
    const row = rowOf(event);
    if (row && !pinned) show(row);
  });
  document.addEventListener("focusin", (event) => {
    const row = rowOf(event);
    if (row && !pinned) show(row);
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("a, summary, #panel")) return;
    const row = rowOf(event);
    pinned = row && row !== pinned ? row : null;
    shown = null;
    show(row);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { pinned = null; show(null); }
  });
  // A link to a row marks its corresponding rows.
  const follow = () => {
    const row = location.hash && el(location.hash.slice(1));
    if (row && row.classList.contains("r")) { pinned = row; show(row); row.scrollIntoView({ block: "center" }); }
  };
  window.addEventListener("hashchange", follow);
  follow();
})();
