"use strict";
// Fetches this page every two seconds and changes what differs. Focus, selection and scrolling stay as they are.
const every = 2000;
const lost = document.getElementById("lost");

function update(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(document.importNode(fresh, true));
  } else if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
  } else if (old.nodeType === Node.ELEMENT_NODE && !old.hasAttribute("data-keep")) {
    for (const name of old.getAttributeNames()) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    while (old.childNodes.length > fresh.childNodes.length) old.lastChild.remove();
    [...fresh.childNodes].forEach((child, at) => {
      if (at < old.childNodes.length) update(old.childNodes[at], child);
      else old.append(document.importNode(child, true));
    });
  }
}

async function refresh() {
  try {
    const response = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(every * 2) });
    if (!response.ok) throw new Error(response.statusText);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    document.title = fresh.title;
    update(document.querySelector("header"), fresh.querySelector("header"));
    for (const section of document.querySelectorAll("section")) {
      const id = section.getAttribute("aria-labelledby");
      update(section, fresh.querySelector(`section[aria-labelledby="${id}"]`));
    }
    lost.hidden = true;
  } catch {
    lost.hidden = false;
  }
  setTimeout(refresh, every);
}
setTimeout(refresh, every);
