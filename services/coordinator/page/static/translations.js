// The first held-out sentences with the network's translations, as of the last evaluation.
import {part, setText, updateTable} from './dom.js';
import {num} from './format.js';

export const translates = (job) => Boolean(job?.spec?.evaluation?.translate);

export function showTranslations(root, told) {
  const translations = told.translations || [];
  root.querySelector('[data-section="translations"]').hidden = translations.length === 0;
  setText(part(root, 'translations-note'), `after step ${num(told.step)}`);
  updateTable(part(root, 'translations'), 'Held-out sentences',
    [{title: 'Sentence'}, {title: 'Translation'}, {title: 'Reference'}],
    translations.map((one) => [one.source || '', one.translation || '', one.reference || '']), 'none');
}
