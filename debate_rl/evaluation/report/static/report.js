"use strict";
(() => {
  const data = JSON.parse(document.getElementById("games").textContent);
  const viewer = document.getElementById("viewer");
  if (!viewer || !data.games.length) return;
  const SVG = "http://www.w3.org/2000/svg";
  const SIDE = 28, MARK = 1.9;
  const part = (name) => viewer.querySelector(`[data-part="${name}"]`);
  const cards = [...document.querySelectorAll("[data-game]")];
  const bars = [...viewer.querySelectorAll(".bars li")];
  const slider = part("slider");
  let game = 0, shown = 0;

  const draw = (parent, name, attributes, text) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    parent.appendChild(node);
  };

  const board = (svg, g, full) => {
    svg.replaceChildren();
    draw(svg, "rect", { width: SIDE, height: SIDE, class: "board" });
    if (full) draw(svg, "image", { href: g.image, width: SIDE, height: SIDE, class: "pixels" });
    for (let i = 0; i < shown; i++) {
      const seat = g.seats[i], [x, y] = g.marks[i], v = g.values[i], now = i === shown - 1 ? " now" : "";
      const column = g.moves[i] % SIDE, row = Math.floor(g.moves[i] / SIDE);
      draw(svg, "path", { d: `M${column + 0.5} ${row + 0.5}L${x} ${y}`, class: `lead ${seat}` });
      draw(svg, "rect", { x: column, y: row, width: 1, height: 1, fill: `rgb(${v},${v},${v})`, class: `pixel ${seat}${now}` });
      if (seat === "honest") draw(svg, "circle", { cx: x, cy: y, r: MARK, class: `mark ${seat}${now}` });
      else draw(svg, "rect", { x: x - 0.9 * MARK, y: y - 0.9 * MARK, width: 1.8 * MARK, height: 1.8 * MARK, class: `mark ${seat}${now}` });
      draw(svg, "text", { x, y: y + 1.05 }, String(i + 1));
    }
  };

  const status = (g) => {
    if (shown === 0) return "No pixel is out yet: the judge has seen nothing.";
    const seat = g.seats[shown - 1] === "honest" ? "Honest" : "The liar";
    const row = Math.floor(g.moves[shown - 1] / SIDE), column = g.moves[shown - 1] % SIDE;
    const lead = g.lead[shown - 1];
    const ahead = lead > 0 ? g.label : g.lie;
    const end = shown === g.moves.length;
    const words = end ? `The judge decides for ${ahead}: ${g.winner === "honest" ? "honest" : "the liar"} wins`
      : `The judge leans to ${ahead}`;
    return `Move ${shown} of ${g.moves.length}: ${seat} shows row ${row}, column ${column} (value ${g.values[shown - 1]} of 255). `
      + `${words}, by ${Math.abs(lead).toFixed(2)} logits.`;
  };

  const render = () => {
    const g = data.games[game];
    part("title").textContent = `Game ${game + 1} of ${data.games.length}: ${g.panel}`;
    part("claims").textContent = `Image ${g.index}: honest says ${g.label}, the liar says ${g.lie}.`;
    board(part("debater"), g, true);
    board(part("judge"), g, false);
    bars.forEach((bar, digit) => {
      const belief = shown ? g.belief[shown - 1][digit] : null;
      bar.classList.toggle("is-honest", digit === g.label);
      bar.classList.toggle("is-liar", digit === g.lie);
      bar.querySelector(".fill").style.width = belief === null ? "0" : `${(100 * belief).toFixed(2)}%`;
      bar.querySelector(".share").textContent = belief === null ? "\u2013" : `${(100 * belief).toFixed(1)} %`;
      bar.querySelector(".who").textContent = digit === g.label ? "\u25CF honest" : digit === g.lie ? "\u25A0 liar" : "";
    });
    part("status").textContent = status(g);
    slider.max = g.moves.length;
    slider.value = shown;
    slider.setAttribute("aria-valuetext", `${shown} of ${g.moves.length} pixels shown`);
    part("start").disabled = part("back").disabled = shown === 0;
    part("next").disabled = part("end").disabled = shown === g.moves.length;
    cards.forEach((card, i) => card.setAttribute("aria-pressed", String(i === game)));
  };

  const show = (ply) => { shown = Math.max(0, Math.min(data.games[game].moves.length, ply)); render(); };
  const open = (number, ply) => {
    game = (number + data.games.length) % data.games.length;
    shown = Math.min(ply, data.games[game].moves.length);
    render();
  };
  part("start").addEventListener("click", () => show(0));
  part("back").addEventListener("click", () => show(shown - 1));
  part("next").addEventListener("click", () => show(shown + 1));
  part("end").addEventListener("click", () => show(data.pixels));
  part("before").addEventListener("click", () => open(game - 1, 0));
  part("after").addEventListener("click", () => open(game + 1, 0));
  slider.addEventListener("input", () => show(Number(slider.value)));
  cards.forEach((card, i) => card.addEventListener("click", () => {
    open(i, 0);
    viewer.scrollIntoView({ block: "nearest" });
    viewer.focus({ preventScroll: true });
  }));
  viewer.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const act = { ArrowLeft: () => show(shown - 1), ArrowRight: () => show(shown + 1), ArrowUp: () => open(game - 1, 0),
      ArrowDown: () => open(game + 1, 0), Home: () => show(0), End: () => show(data.pixels) }[event.key];
    if (act) { act(); event.preventDefault(); }
  });
  viewer.hidden = false;
  const wanted = /^#game-(\d+)(?:-(\d+))?$/.exec(location.hash);
  open(wanted ? Number(wanted[1]) - 1 : 0, wanted && wanted[2] ? Number(wanted[2]) : data.pixels);
})();
