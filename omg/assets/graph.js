// The graph page: draws the notes in #data with force-graph, and lets a person search, filter and read them.
// Notes are untrusted text: everything reaches the page through textContent, never as markup.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const MOVE_MS = calm ? 0 : 500;
  const DAY_MS = 86400000;
  const HUBS = 18; // titles that are shown from any distance
  const HITS = 60; // a list longer than this is not read; the graph shows the rest

  // ---- notes and links -------------------------------------------------------------------------------
  const kinds = new Map(data.types.map((type) => [type.name, { ...type, on: true }]));
  const notes = data.notes.map((note) => ({
    ...note,
    kind: kinds.get(note.type),
    out: [],
    in: [],
    day: note.day ? Math.floor(Date.parse(note.day + "T00:00:00Z") / DAY_MS) : null,
    words: [note.title, note.description, note.path, note.body, ...(note.tags || [])].join("\n").toLowerCase(),
    shown: true,
    found: true,
  }));
  const links = data.links.map(([source, target]) => {
    notes[source].out.push(notes[target]);
    notes[target].in.push(notes[source]);
    return { source: notes[source], target: notes[target] };
  });
  const byPath = new Map(notes.map((note) => [note.path, note]));
  for (const note of notes) {
    note.degree = note.out.length + note.in.length;
    note.radius = Math.min(3.2 + Math.sqrt(note.degree) * 0.9, 16) * (note.priority === "high" ? 1.2 : 1);
  }
  const byDegree = [...notes].sort((a, b) => b.degree - a.degree);
  const large = notes.length > 2000;

  // A wikilink's target as a person may have written it: path, id, or a file name that only one note has.
  const names = new Map();
  for (const note of notes) {
    const last = note.path.slice(note.path.lastIndexOf("/") + 1).toLowerCase();
    names.set(last, names.has(last) ? null : note);
  }
  for (const note of notes) for (const name of [note.id, note.path]) if (name) names.set(name.toLowerCase(), note);
  const resolve = (target) => names.get(target.trim().replace(/\.md$/i, "").toLowerCase()) || null;

  // ---- state -----------------------------------------------------------------------------------------
  let chosen = null;
  let pointed = null;
  let lit = null; // the Set of notes that stand out, or null when all do
  let query = "";
  let range = null; // [first day, last day], or null for all time

  const visible = (note) => note.shown;
  const count = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

  function apply() {
    const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const note of notes) {
      // Maps and other undated pages stay: they hold the picture together.
      const inTime = !range || note.day === null || (note.day >= range[0] && note.day <= range[1]);
      note.shown = note.kind.on && inTime;
      note.found = note.shown && wanted.every((word) => note.words.includes(word));
      shown += note.shown;
    }
    const drawn = links.filter((link) => link.source.shown && link.target.shown).length;
    const found = wanted.length ? notes.filter((note) => note.found) : null;
    const all = shown === notes.length;
    $("count").textContent =
      `${all ? "" : shown.toLocaleString("en") + " of "}${count(notes.length, "note")} · ${count(drawn, "link")}`;
    document.documentElement.dataset.shown = shown;
    document.documentElement.dataset.found = found ? found.length : shown;
    results(found, wanted);
    emphasise();
  }

  function emphasise() {
    const centre = pointed || chosen;
    if (centre && centre.shown) lit = new Set([centre, ...centre.out, ...centre.in]);
    else if (query.trim()) lit = new Set(notes.filter((note) => note.found));
    else lit = null;
    redraw();
  }

  // ---- search, types, time ---------------------------------------------------------------------------
  function make(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  function dot(kind) {
    const element = make("span", { className: "dot" });
    element.style.setProperty("--dot", kind.colour);
    return element;
  }

  function hit(note) {
    const more = note.description && note.description !== note.title;
    const about = more ? make("small", { textContent: note.description }) : null;
    const name = make("b", {}, dot(note.kind), note.title);
    return make("button", { className: "hit", type: "button", onclick: () => choose(note) }, name, about);
  }

  function results(found, wanted) {
    const list = $("results");
    list.replaceChildren();
    if (!found) return;
    const inTitle = (note) => wanted.filter((word) => note.title.toLowerCase().includes(word)).length;
    const ranked = found.map((note) => [inTitle(note), note]);
    ranked.sort((a, b) => b[0] - a[0] || b[1].degree - a[1].degree);
    for (const [, note] of ranked.slice(0, HITS)) list.append(make("li", {}, hit(note)));
    if (!found.length) list.append(make("li", { textContent: "No note has all of these words." }));
    else if (found.length > HITS) list.append(make("li", { textContent: `and ${count(found.length - HITS, "more note")}` }));
  }

  function types() {
    for (const kind of kinds.values()) {
      const button = make("button", { type: "button" }, dot(kind), kind.name, make("span", { textContent: kind.count }));
      button.setAttribute("aria-pressed", "true");
      button.onclick = () => {
        kind.on = !kind.on;
        button.setAttribute("aria-pressed", String(kind.on));
        apply();
      };
      $("types").append(button);
    }
  }

  function timeline() {
    const days = notes.filter((note) => note.day !== null).map((note) => note.day);
    const first = days.reduce((a, b) => Math.min(a, b), Infinity);
    const last = days.reduce((a, b) => Math.max(a, b), -Infinity);
    if (!(last > first)) return;
    const width = Math.ceil((last - first + 1) / 72); // days a bar stands for
    const bins = new Array(Math.floor((last - first) / width) + 1).fill(0);
    for (const day of days) bins[Math.floor((day - first) / width)]++;
    const most = Math.max(...bins);
    const bars = bins.map((n) => {
      const bar = make("i");
      bar.style.height = n ? `${8 + (92 * n) / most}%` : "0";
      return bar;
    });
    $("bars").append(...bars);
    const format = { timeZone: "UTC", day: "numeric", month: "short", year: "numeric" };
    const label = (day) => new Date(day * DAY_MS).toLocaleDateString("en-GB", format);
    const change = (moved) => {
      const [from, to] = [$("from"), $("to")];
      if (+from.value > +to.value) moved.value = moved === from ? to.value : from.value;
      const narrowed = +from.value > 0 || +to.value < bins.length - 1;
      range = narrowed ? [first + from.value * width, first + (+to.value + 1) * width - 1] : null;
      $("from-day").textContent = label(first + from.value * width);
      $("to-day").textContent = label(Math.min(last, first + (+to.value + 1) * width - 1));
      $("all-time").hidden = !narrowed;
      bars.forEach((bar, i) => bar.classList.toggle("out", i < +from.value || i > +to.value));
      apply();
    };
    for (const id of ["from", "to"]) {
      $(id).max = bins.length - 1;
      $(id).oninput = () => change($(id));
    }
    $("all-time").onclick = () => {
      $("from").value = 0;
      $("to").value = bins.length - 1;
      change($("to"));
    };
    $("time").hidden = false;
    $("all-time").onclick();
  }

  // ---- one note --------------------------------------------------------------------------------------
  const WIKILINK = /\[\[([^\]|#\n]+)(?:#[^\]|\n]*)?(?:\|([^\]\n]*))?\]\]|\*\*([^*\n]+)\*\*|`([^`\n]+)`/g;

  function inline(text) {
    const parts = [];
    let end = 0;
    for (const match of text.matchAll(WIKILINK)) {
      parts.push(text.slice(end, match.index));
      end = match.index + match[0].length;
      if (match[3]) parts.push(make("strong", { textContent: match[3] }));
      else if (match[4]) parts.push(make("code", { textContent: match[4] }));
      else {
        const note = resolve(match[1]);
        const textContent = match[2] || (note ? note.title : match[1]);
        const onclick = () => choose(note);
        parts.push(note ? make("button", { className: "go", type: "button", textContent, onclick }) : textContent);
      }
    }
    return [...parts, text.slice(end)];
  }

  // Enough markdown to read a note in: headings, lists, code, paragraphs. The rest stays as it was written.
  function prose(note) {
    const box = make("div", { className: "body" });
    let open = null; // the paragraph, list or code block that the next line may continue
    for (const line of (note.body || "").split("\n")) {
      const heading = line.match(/^#{1,6}\s+(.*)/);
      const item = line.match(/^\s*(?:[-*+]|\d+[.)])\s+(.*)/);
      if (open && open.tagName === "PRE") {
        if (/^\s*```/.test(line)) open = null;
        else open.firstChild.textContent += line + "\n";
      } else if (/^\s*```/.test(line)) {
        open = box.appendChild(make("pre", {}, make("code")));
      } else if (heading) {
        open = null;
        if (box.children.length || heading[1].trim() !== note.title) box.append(make("h3", {}, ...inline(heading[1])));
      } else if (item) {
        if (!open || open.tagName !== "UL") open = box.appendChild(make("ul"));
        open.append(make("li", {}, ...inline(item[1])));
      } else if (/^\s*(<!-{2}.*-{2}>|%%.*%%)\s*$/.test(line) || !line.trim()) {
        open = null;
      } else if (open && open.tagName === "P") {
        open.append(" ", ...inline(line));
      } else {
        open = box.appendChild(make("p", {}, ...inline(line)));
      }
    }
    return box.children.length ? box : null;
  }

  function neighbours(title, list) {
    const unique = [...new Set(list)];
    if (!unique.length) return [];
    const lines = unique.map((note) => make("li", {}, hit(note)));
    return [make("h3", { textContent: title }), make("ul", { className: "near" }, ...lines)];
  }

  function read(note) {
    const panel = $("note");
    panel.hidden = !note;
    if (!note) return panel.replaceChildren();
    const close = make("button", { type: "button", textContent: "×", onclick: () => choose(null) });
    close.setAttribute("aria-label", "Close this note");
    const facts = [
      note.status !== "active" && note.status,
      note.priority && note.priority !== "medium" && `${note.priority} priority`,
      note.pinned && "pinned",
      note.standing && "standing",
      note.loop && `loop ${note.loop}`,
      note.event && `on ${note.event.replace("..", " to ")}`,
      note.updated && `updated ${note.updated}`,
      ...(note.tags || []).map((tag) => "#" + tag),
    ];
    panel.replaceChildren(
      make("div", { className: "kind" }, dot(note.kind), note.type, close),
      make("h2", { textContent: note.title }),
      make("p", { className: "about", textContent: note.description === note.title ? "" : note.description }),
      make("p", { className: "facts" }, ...facts.filter(Boolean).map((fact) => make("span", { textContent: fact }))),
      ...[prose(note)].filter(Boolean),
      ...neighbours("Links to", note.out),
      ...neighbours("Linked from", note.in),
      ...(data.root ? [make("a", { className: "open", href: obsidian(note), textContent: "Open in Obsidian" })] : []),
      make("p", { className: "path", textContent: note.path + ".md" }),
    );
    panel.scrollTop = 0;
  }

  const obsidian = (note) => "obsidian://open?path=" + encodeURIComponent(`${data.root}/${note.path}.md`);

  // The chosen note is the page's fragment, so that Back goes back and a note can be linked to.
  function choose(note) {
    const wanted = note ? "#" + encodeURIComponent(note.path) : "#";
    if (location.hash !== wanted && (note || location.hash)) location.hash = wanted;
    else show(note);
  }

  function show(note) {
    chosen = note;
    read(note);
    emphasise();
    if (note && note.x !== undefined) {
      touched = true;
      graph.centerAt(note.x, note.y, MOVE_MS).zoom(Math.max(graph.zoom(), 2.2), MOVE_MS);
    }
  }

  function fromHash() {
    let path = location.hash.slice(1);
    try {
      path = decodeURIComponent(path);
    } catch {
      path = ""; // a broken fragment names no note
    }
    show(byPath.get(path) || null);
  }

  // ---- the picture -----------------------------------------------------------------------------------
  const paint = {};
  function colours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ground", "ink", "soft", "link", "link-lit", "link-many", "faint"]) paint[name] = style.getPropertyValue("--" + name).trim();
  }

  // A good start makes for a short settling: hubs on a sunflower spiral, every other note beside its biggest neighbour.
  function place() {
    const step = Math.PI * (3 - Math.sqrt(5));
    let hubs = 0;
    for (const note of byDegree) {
      let hub = null;
      for (const next of [...note.out, ...note.in])
        if (next.x !== undefined && (!hub || next.degree > hub.degree)) hub = next;
      if (hub) {
        hub.children = (hub.children || 0) + 1;
        const far = 14 + 6 * Math.sqrt(hub.children);
        note.x = hub.x + far * Math.cos(hub.children * step);
        note.y = hub.y + far * Math.sin(hub.children * step);
      } else {
        const far = 26 * Math.sqrt(hubs + 0.5) * (1 + Math.sqrt(note.degree) / 8);
        note.x = far * Math.cos(hubs * step);
        note.y = far * Math.sin(hubs * step);
        hubs++;
      }
    }
  }

  // Keeps what is linked to nothing near the rest.
  function gravity() {
    let bodies = [];
    const force = (alpha) => {
      for (const body of bodies) {
        const pull = (body.degree ? 0.045 : 0.16) * alpha;
        body.vx -= body.x * pull;
        body.vy -= body.y * pull;
      }
    };
    force.initialize = (given) => (bodies = given);
    return force;
  }

  const outstanding = (note) => !lit || lit.has(note);
  const between = (link) => {
    const centre = pointed || chosen;
    return lit && (centre ? link.source === centre || link.target === centre : lit.has(link.source) && lit.has(link.target));
  };

  function drawNote(note, ctx, scale) {
    const radius = Math.max(note.radius, 1.7 / scale); // a dot of less than 3 pixels has no colour
    ctx.globalAlpha = outstanding(note) ? 1 : 0.14;
    ctx.beginPath();
    ctx.arc(note.x, note.y, radius, 0, 2 * Math.PI);
    if (note.status === "active") {
      ctx.fillStyle = note.kind.colour;
      ctx.fill();
    } else {
      // Superseded and dormant notes are still there, but hollow.
      ctx.fillStyle = paint.ground;
      ctx.fill();
      ctx.strokeStyle = note.kind.colour;
      ctx.lineWidth = 1.2;
      ctx.stroke();
    }
    if (note === chosen || note === pointed || note.pinned) {
      ctx.beginPath();
      ctx.arc(note.x, note.y, radius + 2.5 / Math.max(scale, Math.sqrt(scale)), 0, 2 * Math.PI);
      ctx.strokeStyle = paint.ink;
      ctx.lineWidth = 1.4 / scale;
      ctx.stroke();
    }
    ctx.globalAlpha = 1;
  }

  // Titles: first of what stands out, then of the best linked; none over another; no more than can be read.
  function drawTitles(ctx, scale) {
    const boxes = [];
    const centre = pointed || chosen;
    const first = centre && centre.shown ? [centre] : [];
    const order = lit ? [...first, ...byDegree.filter((note) => lit.has(note))] : byDegree;
    ctx.font = `500 ${12 / scale}px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif`;
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    ctx.lineJoin = "round";
    const [left, right, top, bottom] = [-graph.width() / 2, graph.width() / 2, -graph.height() / 2, graph.height() / 2];
    const middle = graph.centerAt();
    let looked = 0;
    for (const note of order) {
      if (boxes.length >= 70 || looked++ > 1500) break;
      if (!note.shown || (!lit && looked > HUBS && note.radius * scale < 6.5)) continue;
      const x = (note.x - middle.x) * scale;
      const y = (note.y - middle.y + note.radius) * scale + 3;
      if (x < left || x > right || y < top || y > bottom) continue;
      if (!note.label) {
        note.label = note.title.length > 38 ? note.title.slice(0, 37).trimEnd() + "…" : note.title;
        note.labelWidth = ctx.measureText(note.label).width * scale;
      }
      const box = [x - note.labelWidth / 2 - 3, x + note.labelWidth / 2 + 3, y - 1, y + 15];
      const [x0, x1, y0, y1] = box;
      if (boxes.some((b) => x0 < b[1] && x1 > b[0] && y0 < b[3] && y1 > b[2])) continue;
      boxes.push(box);
      ctx.strokeStyle = paint.ground;
      ctx.lineWidth = 3.5 / scale;
      ctx.strokeText(note.label, note.x, note.y + note.radius + 3 / scale);
      ctx.fillStyle = lit || looked <= HUBS ? paint.ink : paint.soft;
      ctx.fillText(note.label, note.x, note.y + note.radius + 3 / scale);
    }
  }

  let graph = null;
  let touched = false; // once a person moves the picture, it no longer fits itself to the window
  let ticks = 0;
  const redraw = () => graph && graph.nodeCanvasObject(drawNote); // setting it asks for one more frame

  function fit() {
    if (touched || !notes.length) return;
    const box = graph.getGraphBbox(visible);
    if (!box) return;
    // The picture goes where the panels leave room: beside them, or on a narrow window between them.
    const panel = $("find").getBoundingClientRect();
    const wide = innerWidth > 900;
    const left = wide ? panel.right + 32 : 24;
    const top = wide ? 40 : Math.min(panel.bottom, innerHeight / 2) + 16;
    const [right, bottom] = [40, $("time").offsetHeight ? $("time").offsetHeight + 40 : 32];
    const [[x0, x1], [y0, y1]] = [box.x, box.y];
    const across = (innerWidth - left - right) / (x1 - x0 + 40);
    const down = (innerHeight - top - bottom) / (y1 - y0 + 40);
    const zoom = Math.min(across, down, 2.5);
    graph.zoom(zoom);
    graph.centerAt((x0 + x1 + (right - left) / zoom) / 2, (y0 + y1 + (bottom - top) / zoom) / 2);
  }

  function draw() {
    place();
    colours();
    graph = new ForceGraph($("graph"))
      .graphData({ nodes: notes, links })
      .nodeId("path")
      .nodeLabel(() => null)
      .nodeVisibility(visible)
      .linkVisibility((link) => link.source.shown && link.target.shown)
      .nodeCanvasObject(drawNote)
      .nodePointerAreaPaint((note, colour, ctx, scale) => {
        ctx.fillStyle = colour;
        ctx.beginPath();
        ctx.arc(note.x, note.y, note.radius + 3 / scale, 0, 2 * Math.PI);
        ctx.fill();
      })
      .linkColor((link) => (between(link) ? paint["link-lit"] : lit ? paint.faint : large ? paint["link-many"] : paint.link))
      .linkWidth(large ? 0.5 : 0.9)
      .onNodeClick(choose)
      .onNodeHover((note) => {
        pointed = note;
        emphasise();
      })
      .onBackgroundClick(() => choose(null))
      .onRenderFramePost((ctx, scale) => {
        drawTitles(ctx, scale);
        document.documentElement.dataset.drawn ||= Math.round(performance.now());
      })
      .onEngineTick(() => {
        if (++ticks === 1 || (ticks % 12 === 0 && ticks < 200)) fit();
      })
      .onEngineStop(() => {
        fit();
        document.documentElement.dataset.settled ||= Math.round(performance.now());
      })
      // 10,000 notes cost about 60 ms a step: they start from place() and cool in a third of the steps.
      .d3AlphaDecay(large ? 0.06 : 0.0228)
      .d3VelocityDecay(0.35)
      .warmupTicks(large ? 0 : calm ? 300 : 30)
      .cooldownTime(large ? 6000 : calm ? 0 : 9000)
      .minZoom(0.02)
      .maxZoom(12);
    graph.d3Force("charge").strength(large ? -20 : -70).theta(large ? 1.4 : 0.9);
    graph.d3Force("link").distance(({ source, target }) => {
      return 22 + 1.6 * Math.sqrt(Math.min(source.degree, target.degree)) + source.radius + target.radius;
    });
    graph.d3Force("gravity", gravity());
    const resize = () => {
      graph.width(innerWidth).height(innerHeight);
      fit();
    };
    addEventListener("resize", resize);
    for (const event of ["wheel", "pointerdown"]) $("graph").addEventListener(event, () => (touched = true), { passive: true });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      colours();
      redraw();
    });
    resize();
  }

  // ---- start -----------------------------------------------------------------------------------------
  $("query").oninput = () => {
    query = $("query").value;
    apply();
  };
  addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== $("query")) {
      event.preventDefault();
      $("query").focus();
    } else if (event.key === "Escape") {
      if (chosen) choose(null);
      else {
        $("query").value = query = "";
        apply();
      }
    } else if (event.key === "Enter" && document.activeElement === $("query")) {
      $("results").querySelector(".hit")?.click();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && $("find").contains(document.activeElement)) {
      const stops = [$("query"), ...$("results").querySelectorAll(".hit")];
      const at = stops.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
      if (at >= 0 && at < stops.length) {
        event.preventDefault();
        stops[at].focus();
      }
    }
  });
  addEventListener("hashchange", fromHash);
  if (!notes.length) document.body.append(make("p", { className: "empty", textContent: "No notes yet." }));
  draw();
  types();
  timeline();
  apply();
  if (location.hash.length > 1) fromHash();
})();
