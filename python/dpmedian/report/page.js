"use strict";
// Tooltips for the curves. The page can be read without this script.
for (const svg of document.querySelectorAll(".chart svg")) {
  const points = JSON.parse(svg.dataset.points);
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const frame = svg.querySelector(".frame");
  const top = Number(frame.getAttribute("y")), bottom = top + Number(frame.getAttribute("height"));
  const element = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.style.visibility = "hidden";
    return svg.appendChild(made);
  };
  const cursor = element("line", { class: "cursor", y1: top, y2: bottom });
  const dot = element("circle", { class: "dot", r: 4.5 });
  const hint = document.createElement("div");
  hint.className = "hint";
  svg.parentNode.appendChild(hint);
  const show = (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * width;
    let near = points[0];
    for (const point of points) if (Math.abs(point[0] - x) < Math.abs(near[0] - x)) near = point;
    cursor.setAttribute("x1", near[0]);
    cursor.setAttribute("x2", near[0]);
    dot.setAttribute("cx", near[0]);
    dot.setAttribute("cy", near[1]);
    hint.textContent = near[2];
    for (const part of [cursor, dot, hint]) part.style.visibility = "visible";
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", () => {
    for (const part of [cursor, dot, hint]) part.style.visibility = "hidden";
  });
}
const save = document.getElementById("save");
save.addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([document.getElementById("record").textContent], { type: "application/json" }));
  link.download = "record.json";
  link.click();
  URL.revokeObjectURL(link.href);
});
save.hidden = false;
