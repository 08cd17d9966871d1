// A folder whose files are the state of every transaction.
//
//   files of a label    the transaction is
//   neither             unknown here: never prepared, or aborted
//   .<label>.count      prepared: durable, and invisible to everything that passes over hidden files
//   <label>.count       committed
//
// One rename takes it from prepared to committed, so there is no moment with both or with half a file. A rename survives a crash
// of the machine only once the folder is synced; that happens before any answer that the host may rely on.

import { getDirectories } from 'wasi:filesystem/preopens@0.2.0';
import { conflict, refused } from './errors.js';

const preparedName = (label) => `.${label}.count`;
const committedName = (label) => `${label}.count`;

export class Folder {
  // Fails when the folder is not granted, or is not a folder. Changes nothing.
  constructor(path) {
    this.descriptor = openFolder(path);
  }

  // Whether the folder knows the label, prepared or committed.
  knows(label) {
    return this.#exists(preparedName(label)) || this.#exists(committedName(label));
  }

  // Makes the content durable and leaves it invisible.
  prepare(label, content) {
    // exclusive: whoever prepared this label before, his file is not overwritten.
    const file = this.descriptor.openAt({}, preparedName(label), { create: true, exclusive: true }, { write: true });
    try {
      const bytes = bytesOf(content);
      for (let written = 0; written < bytes.length; ) {
        written += Number(file.write(bytes.subarray(written), written));
      }
      file.sync();
    } finally {
      file[Symbol.dispose]();
    }
    this.descriptor.sync();
  }

  // Makes a prepared content visible. Safe to repeat, and safe from two processes at once: only one of them renames.
  commit(label, content) {
    let verdict = 'committed';
    try {
      this.descriptor.renameAt(preparedName(label), this.descriptor, committedName(label));
    } catch (error) {
      if (error.payload !== 'no-entry') throw error;
      const found = this.#read(committedName(label));
      if (found === undefined) return 'unknown';
      if (found !== content) throw conflict(`${label} was committed with another content`);
      verdict = 'already-committed';
    }
    // Also for already-committed: whoever renamed it may have died before its sync.
    this.descriptor.sync();
    return verdict;
  }

  // Removes a prepared content. Safe to repeat; a label that was never prepared is fine.
  abort(label) {
    if (this.#exists(committedName(label))) throw conflict(`${label} is committed`);
    try {
      this.descriptor.unlinkFileAt(preparedName(label));
    } catch (error) {
      if (error.payload !== 'no-entry') throw error;
      return;
    }
    this.descriptor.sync();
  }

  #exists(name) {
    return this.#read(name) !== undefined;
  }

  // The content of a file, or undefined when there is none. A count is far below what one read may return.
  #read(name) {
    let file;
    try {
      file = this.descriptor.openAt({}, name, {}, { read: true });
    } catch (error) {
      if (error.payload === 'no-entry') return undefined;
      throw error;
    }
    try {
      const [bytes] = file.read(64, 0);
      return String.fromCharCode(...bytes);
    } finally {
      file[Symbol.dispose]();
    }
  }
}

// The granted folder that holds the path, and from there the rest of the path.
function openFolder(path) {
  for (const [folder, name] of getDirectories()) {
    if (path === name) return folder;
    if (path.startsWith(`${name}/`)) {
      return folder.openAt({}, path.slice(name.length + 1), { directory: true }, { read: true, mutateDirectory: true });
    }
  }
  throw refused(`no folder ${path} was granted; a grant looks like \`grant: { folders: { ${path}: ./counts } }\``);
}

// There is no TextEncoder here; counts and digits are ASCII.
export const bytesOf = (text) => Uint8Array.from(text, (character) => character.charCodeAt(0));
