// Keeps an open page up to date: the server says that something changed, and the page's content is fetched again.
// Nothing depends on it; without it a page is as old as its last load.
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

function replaceContent(next) {
  const content = document.getElementById("content");
  // What was just done is told once: it stays until the page is left.
  const notice = document.getElementById("notice");
  if (notice && next && !next.querySelector("#notice")) next.querySelector("h1").after(notice.cloneNode(true));
  if (!next || content.innerHTML === next.innerHTML) return;
  const open = [...content.querySelectorAll("details[open][id]")].map((element) => element.id);
  const typed = [...content.querySelectorAll(fields)].filter((field) => field.id && field.value !== field.defaultValue);
  const focused = content.contains(document.activeElement) ? document.activeElement : null;
  content.replaceChildren(...next.childNodes);
  for (const { id, value } of typed) if (document.getElementById(id)) document.getElementById(id).value = value;
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) findAgain(content, focused)?.focus({ preventScroll: true });
}

addEventListener("pointerdown", () => { isPressed = true; });
for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => setTimeout(() => { isPressed = false; }, 50));
const events = new EventSource(source);
events.addEventListener("changed", refresh);
events.addEventListener("open", () => { state().textContent = "live"; });
events.addEventListener("error", () => { state().textContent = "offline"; });
addEventListener("pagehide", () => events.close());
