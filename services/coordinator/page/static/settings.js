// The job's settings in words: what was asked for, as the coordinator filled it in.
import {h, part} from './dom.js';
import {integer, num, scientific} from './format.js';
import {hasEnded, pipelineStages} from './job_facts.js';

const NOT_SAID = '–';
const PATHS = ['train', 'masks', 'folder', 'images'];  // of data in folders and files, see docs/job_files/data.md

function enumText(value, prefix, names) {
  const name = String(value || '').replace(prefix, '');
  return names[name] ?? (name === '' ? NOT_SAID : name.toLowerCase().replaceAll('_', ' '));
}

export function scheduleText(spec) {
  return enumText(spec?.pipeline?.schedule, 'SCHEDULE_KIND_',
                  {'': 'GPipe', UNSPECIFIED: 'GPipe', GPIPE: 'GPipe', ONE_FORWARD_ONE_BACKWARD: '1F1B'});
}

export function precisionText(spec) {
  return enumText(spec?.precision, 'PRECISION_', {'': 'float32', UNSPECIFIED: 'float32'});
}

/** Of a network of the zoo: its fields that are set, as "depth 8". */
function fieldsText(fields) {
  // The coordinator fills in groups for every ResNet; batch normalization has none.
  const unused = fields?.norm === 'RESNET_NORM_BATCH' ? ['groups'] : [];
  const shown = Object.entries(fields || {}).filter(([name, value]) => !unused.includes(name)).filter(([, value]) => value === true || Array.isArray(value) || num(value) > 0);
  return shown.map(([name, value]) => [name.replaceAll('_', ' '), value === true ? '' : Array.isArray(value) ? value.join(' × ') : value]
    .filter((word) => word !== '').join(' ')).join(', ');
}

function networkOf(spec) {
  return Object.entries(spec?.model || {}).find(([kind]) => kind !== 'objective') || [NOT_SAID, {}];
}

export function modelText(spec) {
  const [kind, fields] = networkOf(spec);
  if (kind === 'gpt') return `GPT, ${fields.layers} layers × ${fields.width}`;
  if (kind !== 'sequence') return kind;
  const count = `${(fields.layers || []).length} layers`;
  return num(fields.width) > 0 ? `${count}, width ${fields.width}` : count;
}

function objectiveText(spec) {
  const [kind, fields] = Object.entries(spec?.model?.objective || {})[0] || [];
  return kind ? [kind.replaceAll('_', ' '), fieldsText(fields)].filter(Boolean).join(', ') : '';
}

function modelDetail(spec) {
  const [kind, fields] = networkOf(spec);
  const objective = objectiveText(spec);
  const of = (text) => (objective ? `${text}; ${objective}` : text);
  if (kind === 'gpt') {
    const dropout = num(fields.dropout) > 0 ? `, dropout ${scientific(fields.dropout)}` : '';
    return of(`${fields.heads} heads, context ${fields.context}, vocabulary ${fields.vocabulary}${dropout}`);
  }
  if (kind === 'sequence' && num(fields.context) > 0) return of(`context ${fields.context}, vocabulary ${fields.vocabulary}`);
  const {layers, ...rest} = fields;
  return of(fieldsText(kind === 'sequence' ? rest : fields));
}

function batch(spec) {
  const training = spec?.training || {};
  const sequences = num(training.batch_size);
  const micro = num(training.micro_batches);
  const [, model] = networkOf(spec);
  const tokens = sequences * num(model.context);
  return [`${integer(sequences)} ${(model.image || []).length > 0 ? 'images' : 'sequences'}`,
          [micro > 0 ? `M = ${integer(micro)} micro-batches of ${Number((sequences / micro).toFixed(1))}` : '',
           tokens > 0 ? `${integer(tokens)} tokens` : ''].filter(Boolean).join(', ')];
}

function given(name, value) {
  return value === undefined || value === null ? '' : `${name} ${scientific(value)}`;
}

function optimizer(spec) {
  const {optimizer: chosen, gradient_clip_norm: clip} = spec?.training || {};
  const clipping = num(clip) > 0 ? `clip at norm ${scientific(clip)}` : 'no clipping';
  if (chosen?.sgd) {
    return [chosen.sgd.nesterov ? 'SGD, Nesterov' : 'SGD',
            [given('momentum', chosen.sgd.momentum), given('decay', chosen.sgd.weight_decay), clipping].filter(Boolean).join(', ')];
  }
  if (chosen?.rmsprop) {
    const {decay: rho, momentum, epsilon, weight_decay: decay} = chosen.rmsprop;
    return ['RMSProp', [given('ρ', rho), given('momentum', momentum), given('ε', epsilon), given('decay', decay), clipping].filter(Boolean).join(', ')];
  }
  if (chosen?.lamb) {
    const {beta1, beta2, weight_decay: decay} = chosen.lamb;
    return ['LAMB', [given('β₁', beta1), given('β₂', beta2), given('decay', decay), clipping].filter(Boolean).join(', ')];
  }
  if (chosen?.adamw) {
    const {beta1, beta2, weight_decay: decay} = chosen.adamw;
    return ['AdamW', [given('β₁', beta1), given('β₂', beta2), given('decay', decay), clipping].filter(Boolean).join(', ')];
  }
  return [Object.keys(chosen || {})[0] || NOT_SAID, clipping];
}

const RATES = {constant: 'constant', linear: 'linear', cosine: 'cosine', inverse_square_root: 'inverse root',
               exponential: 'exponential', step: 'in steps'};

function learningRate(spec) {
  const [kind, rate] = Object.entries(spec?.training?.learning_rate || {})[0] || [];
  if (!rate) return [NOT_SAID, ''];
  return [`${scientific(rate.peak)} ${RATES[kind] || kind}`,
          [num(rate.warmup_steps) > 0 ? `${integer(rate.warmup_steps)} warm-up steps`
             : num(rate.warmup_epochs) > 0 ? `${num(rate.warmup_epochs)} warm-up epochs` : 'no warm-up',
           kind === 'exponential' ? `× ${num(rate.factor ?? 1)} ${every(rate.every_steps, epochs(rate.every_epochs))}` : '',
           kind === 'step' ? `× ${num(rate.factor ?? 0.1)} at ${(rate.milestones || []).join(', ') || `epochs ${(rate.milestone_epochs || []).join(', ')}`}` : '',
           rate.final === undefined ? '' : `to ${scientific(rate.final)}`].filter(Boolean).join(', ')];
}

function data(spec) {
  const [kind, fields] = Object.entries(spec?.data || {})[0] || [NOT_SAID, {}];
  const path = fields?.path;
  if (path) return [path.split('/').pop(), path.includes('/') ? path : 'bytes as tokens'];
  return [kind.replaceAll('_', ' '), PATHS.flatMap((name) => fields?.[name] || []).join(', ')];
}

function epochs(count) {
  return `every ${num(count) === 1 ? 'epoch' : `${num(count)} epochs`}`;
}

function every(steps, what) {
  return num(steps) > 0 ? `every ${integer(steps)} steps` : what;
}

function saving(spec) {
  const checkpoint = spec?.checkpoint || {};
  const evaluation = spec?.evaluation || {};
  return [every(checkpoint.every_steps, num(checkpoint.every_epochs) > 0 ? epochs(checkpoint.every_epochs)
            : checkpoint.never ? 'at the last step' : 'every 3 minutes or more'),
          num(evaluation.every_steps) > 0 ? `evaluation every ${integer(evaluation.every_steps)} steps`
             : num(evaluation.every_epochs) > 0 ? `evaluation ${epochs(evaluation.every_epochs)}` : 'no evaluation'];
}

function pipeline(spec, stages) {
  const {rematerialization, partition, stages: asked} = spec?.pipeline || {};
  const kept = enumText(rematerialization, 'REMATERIALIZATION_', {'': 'always', UNSPECIFIED: 'always'});
  const cuts = (partition?.cuts || []).length > 0 ? `cuts ${partition.cuts.join(', ')}`
    : `${enumText(partition?.rule, 'PARTITION_RULE_', {'': 'auto', UNSPECIFIED: 'auto'})} partition`;
  const fewer = num(asked) > 0 && stages > 0 && num(asked) !== stages ? ` of ${asked}` : '';
  return [`${scheduleText(spec)}, K = ${stages > 0 ? stages : num(asked) > 0 ? asked : 'all free'}${fewer}`,
          `rematerialize ${kept}, ${cuts}`];
}

/** [[name, title, value, detail], ...] of a Job, in the order in which they are shown. */
export function settingsOf(job) {
  const {spec} = job;
  const {resume} = spec || {};
  const from = resume?.job ? `from ${resume.job}${resume.step === undefined ? '' : `, step ${integer(resume.step)}`}` : '';
  return [
    ['model', 'Model', modelText(spec), modelDetail(spec)],
    ['data', 'Data', ...data(spec)],
    ['batch', 'Batch', ...batch(spec)],
    ['optimizer', 'Optimizer', ...optimizer(spec)],
    ['learning_rate', 'Learning rate', ...learningRate(spec)],
    ['pipeline', 'Schedule', ...pipeline(spec, pipelineStages(job))],
    ['precision', 'Precision', precisionText(spec), [`seed ${spec?.seed ?? NOT_SAID}`, from].filter(Boolean).join(', ')],
    ['saving', 'Checkpoints', ...saving(spec)],
  ];
}

/** The panel, and for a job that succeeded where its weights are. */
export class Settings {
  constructor(root, store) {
    this.root = root;
    this.store = store;
    this.key = '';
  }

  update() {
    const {job} = this.store;
    if (!job) return;
    const result = hasEnded(job) ? [job.weights_folder, job.weights_digest] : [];
    const rows = settingsOf(job);
    const key = JSON.stringify([rows, result]);
    if (key === this.key) return;
    this.key = key;
    part(this.root, 'settings').replaceChildren(...rows.map(([name, title, value, detail]) =>
      h('div', {'data-setting': name}, h('dt', {}, title),
        h('dd', {}, h('span', {class: 'setting', title: value}, value), h('span', {class: 'hint', title: detail}, detail)))));
    const [folder, digest] = result;
    const host = part(this.root, 'result');
    host.hidden = !folder && !digest;
    host.replaceChildren(...[['Weights', folder, 'weights_folder'], ['Digest', digest, 'weights_digest']].filter(([, value]) => value)
      .map(([title, value, field]) => h('div', {}, h('dt', {}, title), h('dd', {class: 'mono', 'data-field': field, 'data-value': value}, value))));
  }
}
