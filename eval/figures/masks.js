// Figure 6: who reads whom, who notices an edit, and what a cache saves.

const MASKS = { none: "none", causal: "causal", block: "block" };

function masks(place) {
  let edited = 2;
  const mask = choice("mask", MASKS, "causal", update);
  const tokens = slider("tokens", range(13).map((i) => i + 4), 10, String, update);
  const prefix = slider("observation tokens, read as one piece", range(16).map((i) => i + 1), 5, String, update);
  const matrix = html("div", { class: "readers" });
  const legend = html("figcaption", {}, "underlined: the observation; the others: actions");
  const verdict = html("p", { class: "verdict", "aria-live": "polite" });
  const cost = cacheCost(() => (mask.value === "block" ? prefix.value : 1), () => mask.value);
  place.append(
    html("div", { class: "controls" }, mask.element, tokens.element, prefix.element),
    html("div", { class: "pair" }, html("figure", {}, matrix, legend), html("div", {},
      html("p", {}, "A row reads the columns that are filled. Press a token above the matrix to edit it: the rows whose result changes light up."),
      verdict)),
    html("h4", {}, "What the cache saves"),
    cost.element,
  );

  function update() {
    const n = tokens.value;
    prefix.element.hidden = legend.hidden = mask.value !== "block";
    if (prefix.value > n) prefix.value = n;
    edited = Math.min(edited, n - 1);
    const reads = (reader, read) => mayRead(mask.value, prefix.value, reader, read);
    const changed = range(n).filter((reader) => reads(reader, edited));
    const focused = document.activeElement?.dataset?.token;
    matrix.style.setProperty("--n", n);
    matrix.replaceChildren(...readerRows(n, reads, edited, mask.value === "block" ? prefix.value : 0, edit));
    if (focused !== undefined) matrix.querySelector(`[data-token="${focused}"]`)?.focus();
    matrix.dataset.changed = changed.join(" ");
    verdict.textContent = editVerdict(edited, changed, n);
    cost.update();
  }
  function edit(token) {
    edited = token;
    update();
  }
  update();
}

function readerRows(n, reads, edited, prefix, edit) {
  const kind = (token) => (token < prefix ? "observation" : "");
  const head = range(n).map((token) => {
    const element = button(`${token + 1}`, () => edit(token));
    return filled(element, { "data-token": token, class: kind(token), "aria-pressed": token === edited, "aria-label": `edit token ${token + 1}` }, []);
  });
  const rows = range(n).flatMap((reader) => {
    const notices = reads(reader, edited) ? " notices" : "";
    const cells = range(n).map((read) => {
      const filledIn = reads(reader, read) ? " reads" : "";
      const path = read === edited && filledIn ? " edited" : "";
      return html("i", { class: `cell${filledIn}${path}`, "data-reads": Number(reads(reader, read)) });
    });
    return [html("span", { class: `${kind(reader)}${notices}` }, `${reader + 1}`), ...cells];
  });
  return [html("span"), ...head, ...rows];
}

function listed(tokens) {
  const first = tokens[0] + 1;
  const last = tokens.at(-1) + 1;
  return tokens.length === 1 ? `token ${first}` : `tokens ${first} to ${last}`;
}

function editVerdict(edited, changed, n) {
  const others = range(n).filter((token) => !changed.includes(token));
  const spared = others.length ? ` For ${listed(others)} nothing changes, not even in the last digit.` : " Nobody is spared.";
  return `Editing token ${edited + 1} changes the results of ${listed(changed)}.${spared}`;
}

function cacheCost(prefixLength, maskName) {
  const powers = (low, high) => range(high - low + 1).map((i) => 2 ** (low + i));
  const n = slider("tokens in the end", powers(4, 10), 256, thousands, update);
  const layers = slider("layers L", range(12).map((i) => i + 1), 4, String, update);
  const width = slider("width d", powers(5, 10), 64, thousands, update);
  const work = bars([{ name: "all again for each new token", colour: "var(--series-2)" }, { name: "keys and values kept", colour: "var(--series-0)" }]);
  const ratio = fact("fewer score cells with the cache");
  const memory = fact("for the cache: 2·L·n·d numbers of 4 bytes");
  const verdict = html("p", { class: "verdict", "aria-live": "polite" });
  const element = html("div", {},
    html("p", {}, "A sequence grows token by token, as a policy says its actions one after another. Each new token is compared with all earlier ones. Count the comparisons (score cells) of one head in one layer:"),
    html("div", { class: "pair" },
      html("div", {}, n.element, layers.element, width.element),
      html("div", {}, work.element, html("div", { class: "facts" }, ratio.element, memory.element))),
    verdict);

  function update() {
    const { without, cached } = generationWork(n.value, prefixLength());
    const possible = maskName() !== "none";
    work.element.classList.toggle("impossible", !possible);
    work.set([
      { share: 1, value: without, text: thousands(without) },
      { share: possible ? cached / without : 0, value: cached, text: possible ? thousands(cached) : "not possible" },
    ]);
    ratio.set(without / cached, possible ? `${(without / cached).toFixed(1)} ×` : "–");
    const numbers = 2 * layers.value * n.value * width.value;
    memory.set(numbers, possible ? bytes(4 * numbers) : "–");
    verdict.textContent = CACHE_VERDICTS[maskName()];
  }
  return { element, update };
}

const CACHE_VERDICTS = {
  none: "Without a mask old tokens read the new one, so from the second layer on their keys and values change: there is nothing to keep.",
  causal: "Nobody reads ahead, so what was computed for old tokens stays right for ever: the cache is exact.",
  block: "The observation is read once, in both directions; no action can change it. Its keys and values, and those of earlier actions, are kept.",
};

const bytes = (n) => (n < 2 ** 20 ? `${thousands(n / 2 ** 10)} KiB` : `${thousands(n / 2 ** 20)} MiB`);
