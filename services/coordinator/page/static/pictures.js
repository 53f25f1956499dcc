// The first held-out pictures with what the network says of them, as of the last evaluation. With them
// come translations of sentences.
import {ApiError, getShownPictures} from './api.js';
import {h, part, setText, updateTable} from './dom.js';
import {num, percent} from './format.js';
import {showTranslations, translates} from './translations.js';

const ASK_AGAIN_MS = 2000;  // at the earliest

const readsImages = (job) => Object.values(job?.spec?.model || {}).some((model) => model?.image?.length > 0);

const className = (id, name) => name || `class ${id}`;

/** How sure it is, in words: no number where it has none. */
const sure = (shown) => (shown.probability === undefined ? 'not a number' : percent(num(shown.probability), 0));

/** What one says, in words: "cat", or "dog, taken for cat". */
export function wordsOf(shown) {
  const label = className(shown.label, shown.label_name), answer = className(shown.answer, shown.answer_name);
  return shown.label === shown.answer ? `${label}, ${sure(shown)}` : `${label}, taken for ${answer}, ${sure(shown)}`;
}

// The content security policy lets no picture come from data in the page: it is drawn.
async function draw(canvas, base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], {type: 'image/png'}));
  canvas.width = bitmap.width;
  canvas.height = bitmap.height;
  canvas.getContext('2d').drawImage(bitmap, 0, 0);
}

export class Pictures {
  constructor(root, store, jobId) {
    this.root = root;
    this.store = store;
    this.jobId = jobId;
    this.section = root.querySelector('[data-section="pictures"]');
    this.canvases = [];
    this.files = null;     // base64, once they came
    this.seen = undefined;  // the evaluation that was asked for
    this.askedAt = -Infinity;
    this.asking = false;
  }

  update() {
    const evaluation = this.store.series.evaluations.at(-1);
    const job = this.store.job;
    if (!evaluation || !(readsImages(job) || translates(job)) || this.asking) return;
    const seen = `${evaluation.step} ${evaluation.time}`;
    if (seen === this.seen || performance.now() - this.askedAt < ASK_AGAIN_MS) return;
    this.ask(seen);
  }

  async ask(seen) {
    this.asking = true;
    this.askedAt = performance.now();
    try {
      const told = await getShownPictures(this.jobId, this.files === null);
      if (this.files === null && (told.files || []).length > 0) this.files = told.files;
      this.seen = seen;
      this.show(told);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;  // else asked again
    } finally {
      this.asking = false;
    }
  }

  show(told) {
    const pictures = told.pictures || [];
    this.section.hidden = pictures.length === 0;
    showTranslations(this.root, told);
    this.store.changed();  // the link to the section comes and goes with it
    const right = pictures.filter((shown) => shown.label === shown.answer).length;
    setText(part(this.root, 'pictures-note'),
            `${right} of the first ${pictures.length} right, after step ${num(told.step)}`);
    part(this.root, 'pictures').replaceChildren(...pictures.map((shown, index) => this.item(shown, index)));
    updateTable(part(this.root, 'pictures-table'), 'Held-out pictures',
      [{title: 'Picture', number: true}, {title: 'Is'}, {title: 'Taken for'}, {title: 'Probability', number: true}, {title: 'Right'}],
      pictures.map((shown, index) => [index, className(shown.label, shown.label_name), className(shown.answer, shown.answer_name),
                                      sure(shown), shown.label === shown.answer ? 'yes' : 'no']), 'none');
  }

  // A mark and the border's form tell right from wrong, beside the colour.
  item(shown, index) {
    const isRight = shown.label === shown.answer;
    return h('li', {class: isRight ? 'shown' : 'shown wrong', title: `Picture ${index}: ${wordsOf(shown)}`},
      this.canvas(index),
      h('span', {class: 'shown-answer'}, h('span', {class: 'shown-mark', 'aria-hidden': 'true'}, isRight ? '✓' : '✗'),
        h('span', {class: 'hidden'}, isRight ? 'right:' : 'wrong:'),
        h('span', {class: 'shown-name'}, className(shown.answer, shown.answer_name))),
      h('span', {class: 'shown-label note'}, isRight ? sure(shown) : `${sure(shown)}, is ${className(shown.label, shown.label_name)}`));
  }

  // Drawn once: pictures do not change.
  canvas(index) {
    if (!this.canvases[index]) {
      const canvas = h('canvas', {class: 'shown-picture', width: 32, height: 32, role: 'img', 'aria-label': `Held-out picture ${index}`});
      const file = this.files?.[index];
      // One that no browser can read stays empty; its answer stands below.
      if (file) draw(canvas, file).catch(() => canvas.setAttribute('aria-label', `Held-out picture ${index}, which cannot be shown`));
      if (!this.files) return canvas;
      this.canvases[index] = canvas;
    }
    return this.canvases[index];
  }
}
