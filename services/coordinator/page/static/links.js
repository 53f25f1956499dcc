// What flows between neighbours.
import {part, updateTable} from './dom.js';
import {bytes, integer, span} from './format.js';

const COLUMNS = [
  {title: 'From'}, {title: 'To'}, {title: 'Carries'}, {title: 'Rate', number: true}, {title: 'Sent', number: true},
  {title: 'In flight', number: true}, {title: 'p95', number: true}, {title: 'Reconnects', number: true},
];

function linkOf(info, peer) {
  return (info?.telemetry?.links || []).find((link) => link.peer === peer);
}

/** One row per direction: bytes and queue as the sender tells them, transfer time as the receiver does. */
export function updateLinks(root, store) {
  const stages = store.job?.stages || [];
  const rows = [];
  const add = (from, to, peer, back, carries) => {
    const sender = linkOf(store.stageAtWork(stages[from].name), peer);
    const receiver = linkOf(store.stageAtWork(stages[to].name), back);
    if (!sender && !receiver) return;
    const rate = store.telemetry.rates(stages[from].name, peer);
    rows.push([`stage ${from}`, `stage ${to}`, carries, rate ? `${bytes(rate.sent)}/s` : '–',
               {text: bytes(sender?.sent_bytes), field: `sent-${from}-${to}`, value: sender?.sent_bytes},
               integer(sender?.inflight_messages), span(receiver?.transfer_p95_seconds),
               {text: integer(sender?.reconnects), class: Number(sender?.reconnects) > 0 ? 'warn' : ''}]);
  };
  for (let k = 0; k + 1 < stages.length; k += 1) {
    add(k, k + 1, 'downstream', 'upstream', 'activations');
    add(k + 1, k, 'upstream', 'downstream', 'gradients');
  }
  updateTable(part(root, 'links'), 'Links between neighbours', COLUMNS, rows,
              store.ended ? 'The job has ended: its links are closed.' : stages.length === 1 ? 'One stage: no links.' : 'No link is open.');
}
