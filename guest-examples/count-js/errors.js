// The contract's error, by who has to act on it. Each function returns a value to throw.

// The operator has to change something: configuration, grants, rights.
export const refused = (message) => new SinkError('refused', message);
// The label is not in the state that the host believes it to be in.
export const conflict = (message) => new SinkError('conflict', message);
// A mistake of this plugin, or calls in an order that the contract excludes.
export const broken = (message) => new SinkError('broken', message);

class SinkError extends Error {
  constructor(kind, message, code = '') {
    super(message);
    Object.assign(this, { kind, code });
  }
}

// What only the operator can mend. A full disk, say, may be mended by time.
const REFUSED = ['access', 'not-permitted', 'read-only', 'no-entry', 'not-directory'];

// What a failed call of WASI means: such an exception carries the error code as `payload`.
function fromWasi(error) {
  const code = error.payload;
  const kind = REFUSED.includes(code) ? 'refused' : code === 'exist' ? 'conflict' : 'unavailable';
  return new SinkError(kind, `the file system answers ${code}`, code);
}

// Runs a function of the contract so that whatever it throws reaches the host as the contract's error. Anything else that left it
// would trap the instance. The error has to be a plain object with just these fields.
export function typedErrors(call) {
  return (...parameters) => {
    try {
      return call(...parameters);
    } catch (thrown) {
      const { kind, message, code } = describe(thrown);
      throw { kind, message, code, retryAfterMs: 0 };
    }
  };
}

function describe(thrown) {
  if (thrown instanceof SinkError) return thrown;
  if (typeof thrown?.payload === 'string') return fromWasi(thrown);
  // There is no console here; the stack goes where the operator looks.
  return { kind: 'broken', message: `${thrown}\n${thrown?.stack ?? ''}`, code: '' };
}
