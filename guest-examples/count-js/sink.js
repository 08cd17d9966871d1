// A sink that counts the records of each transaction: what each call of the contract does for a count.
// How the counts are kept is in folder.js, how errors reach the host in errors.js.

import { broken, conflict, refused, typedErrors } from './errors.js';
import { Folder, bytesOf } from './folder.js';

// The handle is the count as decimal digits. Another form of handle gets another name.
const HANDLE_FORMAT = 'count/1';
const LARGEST_U32 = 2 ** 32 - 1;

// The host checks the configuration against this before it opens the sink.
const SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: {
    directory: {
      type: 'string',
      minLength: 1,
      description: 'The folder that the counts are written to, by the name that the grant gives it.',
    },
  },
  required: ['directory'],
  additionalProperties: false,
};

const DOCUMENTATION = `Counts the records of each transaction, and shows the count when the transaction is committed.

A committed transaction is a file \`<label>.count\` with the number of its records. Until then it is a hidden file, so a reader
that passes over hidden files sees each count exactly once.

Needs a folder: \`grant: { folders: { /out: ./counts } }\` with the config \`{ directory: /out }\`.
`;

// What open makes. An instance is opened once.
let folder;
// Between begin and precommit: { label, records }.
let transaction;

function describe() {
  return {
    name: 'count-js',
    version: '0.1.0',
    summary: 'Counts the records of each transaction (example in JavaScript).',
    documentation: DOCUMENTATION,
    configSchema: JSON.stringify(SCHEMA, undefined, 2),
    guarantee: 'exactly-once',
    handleFormats: [HANDLE_FORMAT],
    needs: [{ name: 'wasi:filesystem/preopens', why: 'The counts are files in the folder that `directory` names.' }],
  };
}

// Writers, committers and probes need the same: a folder that is there.
function open(setup) {
  const { directory } = parseConfig(setup.config);
  folder = new Folder(directory);
  return {
    target: `folder ${directory}`,
    // Counting needs no record's bytes, so no column is asked for beyond what a batch always has.
    ends: false,
    keys: false,
    timestamps: false,
    headers: false,
    maxBatchBytes: 0,
    maxBatchRecords: 0,
    // A file stays until somebody removes it, and a write ends with the process that makes it.
    preparedLifetimeS: undefined,
    settleMs: 0,
  };
}

function parseConfig(json) {
  let config;
  try {
    config = JSON.parse(json);
  } catch (error) {
    throw refused(`the configuration does not fit: ${error.message}`);
  }
  if (typeof config?.directory !== 'string') throw refused('the configuration does not fit: `directory` is missing');
  return config;
}

// Nothing is written yet; only a label that is taken is found out now rather than at the end.
function begin({ label }) {
  needOpened();
  if (transaction) throw broken(`begin of ${label} while ${transaction.label} is open`);
  if (folder.knows(label)) throw conflict(`${label} is taken`);
  transaction = { label, records: 0 };
}

function invoke(label, batch) {
  if (transaction?.label !== label) throw broken(`invoke of ${label}, which is not open`);
  transaction.records += batch.count;
  return [];
}

function precommit(label) {
  if (transaction?.label !== label) throw broken(`precommit of ${label}, which is not open`);
  const { records } = transaction;
  transaction = undefined;
  folder.prepare(label, contentOf(records));
  // A count beyond 32 bits is not said rather than said wrongly.
  return { handle: bytesOf(String(records)), records: records <= LARGEST_U32 ? records : undefined };
}

function commit({ label }, handle) {
  needOpened();
  const digits = String.fromCharCode(...handle);
  if (!/^[0-9]+$/.test(digits)) throw broken(`the handle of ${label} is not a ${HANDLE_FORMAT}`);
  return folder.commit(label, contentOf(digits));
}

// The label is all there is: the transaction may be one of a writer that died.
function abort({ label }) {
  needOpened();
  if (transaction?.label === label) transaction = undefined;
  folder.abort(label);
}

function needOpened() {
  if (!folder) throw broken('called before open');
}

const contentOf = (records) => `${records}\n`;

// The border to the host: the export is named after the interface, and no function lets an exception out as it is.
export const sink = {
  describe,
  open: typedErrors(open),
  begin: typedErrors(begin),
  invoke: typedErrors(invoke),
  precommit: typedErrors(precommit),
  commit: typedErrors(commit),
  abort: typedErrors(abort),
};
