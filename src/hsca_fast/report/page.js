// Figures follow the page's colours; blocks of the map open their snapshot in the reader.
const dark = matchMedia("(prefers-color-scheme: dark)");
const colours = () => {
  const style = getComputedStyle(document.documentElement);
  return { text: style.getPropertyValue("--text").trim(), line: style.getPropertyValue("--line").trim() };
};
const themed = (layout) => {
  const { text, line } = colours();
  const out = structuredClone(layout);
  out.font = { ...out.font, color: text };
  for (const key of Object.keys(out)) {
    if (/^[xy]axis/.test(key)) Object.assign(out[key], { gridcolor: line, zerolinecolor: line, linecolor: line });
  }
  return out;
};
const draw = ([place, figure]) =>
  Plotly.react(place, figure.data, themed(figure.layout), { responsive: true, displaylogo: false });
// One task a figure: the page answers in between, and the first figures are there at once.
const drawAll = () => figures.forEach((figure, i) => setTimeout(() => draw(figure), 20 * i));

const reader = document.getElementById("reader");
if (reader) {
  const snapshots = JSON.parse(document.getElementById("snapshots").textContent);
  const body = reader.querySelector(".body"), number = reader.querySelector("input");
  const element = (tag, name, text) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const marked = (pieces) => {
    const line = element("p", "text");
    for (const [text, kind, label] of pieces) {
      if (!kind) {
        line.append(text);
        continue;
      }
      const mark = element("mark", kind, text);
      if (label) mark.append(element("sub", "", label));
      line.append(mark);
    }
    return line;
  };
  const show = (i) => {
    i = Math.min(Math.max(i, 0), snapshots.length - 1);
    number.value = i;
    const [facts, chunks] = snapshots[i];
    body.replaceChildren(element("p", "facts-line chunk", facts));
    for (const [line, pieces] of chunks) {
      const chunk = element("div", "chunk");
      chunk.append(element("p", "facts-line", line), marked(pieces));
      body.append(chunk);
    }
    body.scrollTop = 0;
  };
  reader.querySelector(".previous").onclick = () => show(+number.value - 1);
  reader.querySelector(".next").onclick = () => show(+number.value + 1);
  number.onchange = () => show(Math.trunc(+number.value) || 0);
  draw(figures[0]);
  document.getElementById("map").on("plotly_click", (event) => {
    show(event.points[0].customdata);
    reader.scrollIntoView({ block: "nearest" });
  });
  show(0);
}
drawAll();
dark.addEventListener("change", drawAll);
document.documentElement.dataset.ready = Math.round(performance.now()); // milliseconds until one can act
