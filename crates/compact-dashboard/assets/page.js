// Keeps an open page up to date (the server says that something changed, and the page's content is fetched again), and folds
// its sections: those that a person folded, and on a telephone all but the first. Nothing depends on it.
"use strict";

const source = document.currentScript.dataset.live;
const state = () => document.getElementById("live");
const fields = "input:not([type=hidden]), textarea";
let isFetching = false;
let isWanted = false;
let isPressed = false;

// Whoever types, clicks, or has chosen text, is not disturbed.
function isBusy() {
  const field = document.activeElement;
  const types = field && field.matches(fields) && field.value !== field.defaultValue;
  return types || isPressed || String(document.getSelection()) !== "";
}

// What changes while a page is being fetched is fetched once more.
async function refresh() {
  isWanted = true;
  if (isFetching) return;
  isFetching = true;
  while (isWanted) {
    while (isBusy()) await new Promise((done) => setTimeout(done, 500));
    isWanted = false;
    await fetchContent();
  }
  isFetching = false;
}

async function fetchContent() {
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    // Who became busy meanwhile gets it afterwards.
    if (isBusy()) isWanted = true;
    else replaceContent(next.getElementById("content"));
  } catch {
    // The server is gone for a moment; the next change brings it up to date.
  }
}

// Finds the element that had the focus in the content that takes its place: by its id, or as one that is the same.
function findAgain(content, focused) {
  if (focused.id) return document.getElementById(focused.id);
  const same = [...content.querySelectorAll(focused.tagName)];
  return same.find((element) => element.outerHTML === focused.outerHTML && element.closest("form")?.innerHTML === focused.closest("form")?.innerHTML);
}

// What was just done is told once: it stays in its place until the page is left.
function keepNotice(next) {
  const notice = document.getElementById("notice");
  const place = notice && next.querySelector(`#${CSS.escape(notice.parentElement.id)}`);
  if (place && !next.querySelector("#notice")) place.append(notice.cloneNode(true));
}

function replaceContent(next) {
  const content = document.getElementById("content");
  if (!next) return;
  keepNotice(next);
  for (const part of next.querySelectorAll("details[id]")) {
    const known = document.getElementById(part.id);
    if (known) part.open = known.open;
  }
  if (content.innerHTML === next.innerHTML) return;
  const typed = [...content.querySelectorAll(fields)].filter((field) => field.id && field.value !== field.defaultValue);
  const focused = content.contains(document.activeElement) ? document.activeElement : null;
  content.replaceChildren(...next.childNodes);
  for (const { id, value } of typed) if (document.getElementById(id)) document.getElementById(id).value = value;
  if (focused) findAgain(content, focused)?.focus({ preventScroll: true });
}

// A person's choice holds for all pages of a kind, as long as the window is open.
const foldName = (part) => `${location.pathname} ${part.id}`;

function foldSections() {
  const isNarrow = matchMedia("(max-width: 640px)").matches;
  [...document.querySelectorAll("details.section")].forEach((part, at) => {
    const chosen = sessionStorage.getItem(foldName(part));
    part.open = chosen ? chosen === "open" : !isNarrow || at === 0;
  });
  openTarget();
}

// What an address points at is never folded away.
function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  target.scrollIntoView({ block: target.id === "notice" ? "center" : "start" });
  if (target.id === "notice") target.focus({ preventScroll: true });
}

document.addEventListener("click", (event) => {
  const part = event.target.closest("details.section > summary")?.parentElement;
  // It is open now, and is not when this is over.
  if (part) sessionStorage.setItem(foldName(part), part.open ? "folded" : "open");
});
addEventListener("hashchange", openTarget);
foldSections();

if (source) {
  addEventListener("pointerdown", () => { isPressed = true; });
  for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => setTimeout(() => { isPressed = false; }, 50));
  const events = new EventSource(source);
  events.addEventListener("changed", refresh);
  events.addEventListener("open", () => { state().textContent = "live"; });
  events.addEventListener("error", () => { state().textContent = "offline"; });
  addEventListener("pagehide", () => events.close());
  // Who sends a form leaves the page, and what it shows may be gone.
  addEventListener("submit", () => events.close());
}
