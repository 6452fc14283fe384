// Figures follow the page's colours; blocks of the map and points of the curves open their snapshot in the reader.
const dark = matchMedia("(prefers-color-scheme: dark)");
const colours = () => {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return { text: of("--text"), line: of("--line"), back: of("--back") };
};
const themed = (layout) => {
  const { text, line, back } = colours();
  const out = structuredClone(layout);
  out.font = { ...out.font, color: text };
  out.hoverlabel = { bgcolor: back, bordercolor: line, font: { color: text } };
  for (const key of Object.keys(out)) {
    if (/^[xy]axis/.test(key)) Object.assign(out[key], { gridcolor: line, zerolinecolor: line, linecolor: line });
  }
  return out;
};
const layouts = {}; // what this script added to a figure's layout
const draw = ([place, figure]) =>
  Plotly.react(place, figure.data, { ...themed(figure.layout), ...layouts[place] }, { responsive: true, displaylogo: false });
// One task a figure: the page answers in between, and the first figures are there at once.
const drawAll = (which) => which.forEach((figure, i) => setTimeout(() => draw(figure), 20 * i));
const others = figures.filter(([place]) => !["map", "curves"].includes(place)); // than those the reader draws
const ready = () => {
  document.documentElement.dataset.ready = Math.round(performance.now()); // milliseconds until one can act
};

const unpacked = async (name) => {
  const packed = atob(document.getElementById(name).textContent);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
};

const element = (tag, name, text) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
};

const marked = (pieces) => {
  const line = element("p", "text");
  line.dir = "auto";
  for (const piece of pieces) {
    if (typeof piece === "string") {
      line.append(piece);
      continue;
    }
    const [text, kind, label] = piece;
    const mark = element("mark", kind, text);
    if (label) mark.append(element("sub", "", label));
    line.append(mark);
  }
  return line;
};

const startReader = (reader, snapshots) => {
  const body = reader.querySelector(".body"), number = reader.querySelector("input");
  const map = document.getElementById("map"), curves = document.getElementById("curves");
  const ends = []; // chunks up to the end of each snapshot
  snapshots.forEach(([, chunks], i) => ends.push((ends[i - 1] ?? 0) + chunks.length));
  number.max = snapshots.length - 1;
  reader.querySelector(".count").textContent = `of 0 to ${number.max}`;
  let shown = -1;
  const outline = (i) => {
    const shape = { type: "rect", xref: "x", yref: "paper", x0: ends[i] - snapshots[i][1].length, x1: ends[i], y0: 0, y1: 1 };
    const line = { color: colours().text, width: 1.5 };
    layouts.map = { shapes: [{ ...shape, line, fillcolor: "rgba(127,140,154,.18)" }] };
    Plotly.relayout(map, layouts.map);
  };
  const show = (i) => {
    i = Math.min(Math.max(i, 0), snapshots.length - 1);
    number.value = i;
    if (i === shown) return;
    shown = i;
    const [facts, chunks] = snapshots[i];
    body.replaceChildren(element("p", "chunk facts-line", facts));
    for (const [line, pieces] of chunks) {
      const chunk = element("div", "chunk");
      chunk.append(element("p", "facts-line", line), marked(pieces));
      body.append(chunk);
    }
    body.scrollTop = 0;
    outline(i);
  };
  const showChunk = (n) => {
    const i = ends.findIndex((end) => n < end);
    show(i);
    const chunk = body.querySelectorAll("div.chunk")[n - ends[i] + snapshots[i][1].length];
    if (chunk) body.scrollTop = chunk.offsetTop - body.offsetTop;
    reader.scrollIntoView({ block: "nearest" });
  };
  reader.querySelector(".previous").onclick = () => show(shown - 1);
  reader.querySelector(".next").onclick = () => show(shown + 1);
  number.onchange = () => show(Math.trunc(+number.value) || 0);
  const steps = { ArrowLeft: -1, ArrowRight: 1 };
  map.addEventListener("keydown", (event) => {
    if (!(event.key in steps)) return;
    show(shown + steps[event.key]);
    event.preventDefault();
  });
  map.on("plotly_click", (event) => {
    show(event.points[0].customdata);
    reader.scrollIntoView({ block: "nearest" });
  });
  // The curves of ten thousand chunks take a while; the reader does not wait for them.
  setTimeout(() => {
    draw(figures.find(([place]) => place === "curves"));
    curves.on("plotly_click", (event) => showChunk(Math.round(event.points[0].x)));
  }, 20);
  show(0);
  dark.addEventListener("change", () => outline(shown));
};

const reader = document.getElementById("reader");
if (reader) {
  const texts = unpacked("snapshots"); // beside the drawing
  draw(figures[0]);
  texts.then(
    (snapshots) => {
      startReader(reader, snapshots);
      ready();
      drawAll(others);
    },
    (error) => {
      reader.querySelector(".body").append(element("p", "chunk", `This browser cannot unpack the texts: ${error}`));
      drawAll(figures);
    },
  );
} else {
  drawAll(figures);
  ready();
}
dark.addEventListener("change", () => drawAll(figures));
