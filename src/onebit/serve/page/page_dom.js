// What all parts of the page use: elements from texts, and numbers as texts.

export const byId = (id) => document.getElementById(id);

export function node(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

export function drawing(name, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

export const count = (n) => n.toLocaleString("en");

export const percent = (share, digits = 0) => (100 * share).toFixed(digits) + " %";

// 97 % (95 to 98)
export function interval(found) {
  if (!found) return "–";
  return percent(found.estimate) + " (" + (100 * found.low).toFixed(0) + " to " + (100 * found.high).toFixed(0) + ")";
}

// 2 to 5 points
export function points(found) {
  const ends = [found.low, found.high].map((end) => 100 * Math.abs(end)).sort((a, b) => a - b);
  const digits = ends[0] < 1 ? 1 : 0;
  return ends[0].toFixed(digits) + " to " + ends[1].toFixed(digits) + " points";
}

const DAY = 86400;

// 14:20:05 of today, Tue 14:20 of the last week, 3 Nov 14:20 of before.
export function when(at, now) {
  const date = new Date(1000 * at);
  const age = now - at;
  const time = { hour: "2-digit", minute: "2-digit" };
  if (age < DAY && date.getDate() === new Date(1000 * now).getDate()) return date.toLocaleTimeString("en-GB");
  if (age < 6 * DAY) return date.toLocaleString("en-GB", { weekday: "short", ...time });
  return date.toLocaleString("en-GB", { day: "numeric", month: "short", ...time });
}

// Replaces the options of a choice where they differ, and keeps what is chosen.
export function fillChoice(select, names) {
  if ([...select.options].map((option) => option.value).join("\n") === names.join("\n")) return;
  const chosen = select.value;
  select.replaceChildren(...names.map((name) => node("option", { value: name }, name)));
  if (names.includes(chosen)) select.value = chosen;
}

// Replaces the content of an element, unless someone is using what is in it.
export function fill(element, ...children) {
  if (!element.contains(document.activeElement)) element.replaceChildren(...children);
}
