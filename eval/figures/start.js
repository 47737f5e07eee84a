// Every interactive part that is on the page comes to life.

const PLAYS = { 1: lookup, 4: order, 6: masks, 7: cost };
const given = JSON.parse(document.getElementById("data").textContent);
for (const place of document.querySelectorAll("[data-play]")) {
  place.replaceChildren();
  PLAYS[place.dataset.play](place, given[place.dataset.play]);
}
