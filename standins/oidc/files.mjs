// Writes files atomically: a crash leaves either the old content or the new.
import { randomBytes } from "node:crypto";
import { link, open, rename, unlink } from "node:fs/promises";

export async function replaceFile(path, text) {
  await rename(await writeBeside(path, text), path);
}

/** Returns false and changes nothing if the file already exists. */
export async function createFile(path, text) {
  const temporary = await writeBeside(path, text);
  try {
    await link(temporary, path);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  } finally {
    await unlink(temporary);
  }
}

async function writeBeside(path, text) {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  return temporary;
}
