// What flows between neighbours.
import {part, updateTable} from './dom.js';
import {bytes, integer, span} from './format.js';
import {isHeld, placeOf} from './job_facts.js';

const COLUMNS = [
  {title: 'From'}, {title: 'To'}, {title: 'Carries'}, {title: 'Rate', number: true}, {title: 'Sent', number: true},
  {title: 'In flight', number: true}, {title: 'p95', number: true}, {title: 'Reconnects', number: true},
];

function linkOf(info, peer) {
  return (info?.telemetry?.links || []).find((link) => link.peer === peer);
}

/** Of several cells on a stage: one row per stage and direction, of all its edges together. */
function rowsOfStages(stages, store) {
  return stages.flatMap((stage, index) => [['downstream', 'activations'], ['upstream', 'gradients']].flatMap(([peer, carries]) => {
    const sender = linkOf(store.stageAtWork(stage.name), peer);
    if (!sender) return [];
    const rate = store.telemetry.rates(stage.name, peer);
    const here = placeOf(stage, index);
    return [[`stage ${here}`, peer === 'downstream' ? 'the next cells' : 'the cells before', carries,
             rate ? `${bytes(rate.sent)}/s` : '–',
             {text: bytes(sender.sent_bytes), field: `sent-${here}-${peer}`, value: sender.sent_bytes},
             integer(sender.inflight_messages), '–',
             {text: integer(sender.reconnects), class: Number(sender.reconnects) > 0 ? 'warn' : ''}]];
  }));
}

/** One row per direction: bytes and queue as the sender tells them, transfer time as the receiver does. */
export function updateLinks(root, store) {
  const stages = store.job?.stages || [];
  const several = stages.some((stage) => (stage.cells || []).length > 1);
  const rows = several ? rowsOfStages(stages, store) : [];
  const add = (from, to, peer, back, carries) => {
    const sender = linkOf(store.stageAtWork(stages[from].name), peer);
    const receiver = linkOf(store.stageAtWork(stages[to].name), back);
    if (!sender && !receiver) return;
    const rate = store.telemetry.rates(stages[from].name, peer);
    const [here, there] = [from, to].map((index) => placeOf(stages[index], index));
    rows.push([`stage ${here}`, `stage ${there}`, carries, rate ? `${bytes(rate.sent)}/s` : '–',
               {text: bytes(sender?.sent_bytes), field: `sent-${here}-${there}`, value: sender?.sent_bytes},
               integer(sender?.inflight_messages), span(receiver?.transfer_p95_seconds),
               {text: integer(sender?.reconnects), class: Number(sender?.reconnects) > 0 ? 'warn' : ''}]);
  };
  for (let k = 0; k + 1 < stages.length && !several; k += 1) {
    // Over a lost stage there is no link.
    if (placeOf(stages[k + 1], k + 1) !== placeOf(stages[k], k) + 1) continue;
    add(k, k + 1, 'downstream', 'upstream', 'activations');
    add(k + 1, k, 'upstream', 'downstream', 'gradients');
  }
  updateTable(part(root, 'links'), 'Links between neighbours', COLUMNS, rows,
              store.ended || isHeld(store.job) ? 'The job does not run: its links are closed.'
                : stages.length === 1 ? 'One stage: no links.' : 'No link is open.');
}
