// Stores each local account in its own JSON file, so that the sign-in server and `scripts/token` can both write
// without a lock. The file name is the account's `sub`, which is derived from the email address.
import { createHash, randomBytes, scrypt as scryptWithCallback, timingSafeEqual } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { createFile, replaceFile } from "./files.mjs";

const scrypt = promisify(scryptWithCallback);
// scrypt parameters; every account stores the ones it was hashed with.
const COST = { N: 16384, r: 8, p: 1 };
export const MIN_PASSWORD_LENGTH = 8;

export class SignInError extends Error {}

export class Accounts {
  constructor(data) {
    this.folder = join(data, "accounts");
  }

  /** Returns the account with this `sub`, or undefined. */
  async find(sub) {
    if (!/^[0-9a-f]{32}$/.test(sub)) return undefined;
    try {
      return JSON.parse(await readFile(this.#path(sub), "utf8"));
    } catch (error) {
      if (error.code === "ENOENT") return undefined;
      throw error;
    }
  }

  /** Returns the account with this email address. Creates it, without a password, if it does not exist. */
  async findOrCreate(text) {
    const email = parseEmail(text);
    const sub = subOf(email);
    const existing = await this.find(sub);
    if (existing) return existing;
    await this.#create({ sub, email, createdAt: new Date().toISOString() });
    return this.find(sub);
  }

  /** Signs in. An unknown email address creates an account; an account created by `scripts/token` gets its password now. */
  async signIn(text, password) {
    const email = parseEmail(text);
    const sub = subOf(email);
    const existing = await this.find(sub);
    if (existing?.password) {
      if (!(await matches(password, existing.password))) {
        throw new SignInError("Wrong password for this account. Please try again.");
      }
      return existing;
    }
    if (password.length < MIN_PASSWORD_LENGTH) {
      throw new SignInError(`Choose a password of at least ${MIN_PASSWORD_LENGTH} characters for the new account.`);
    }
    const account = { sub, email, createdAt: new Date().toISOString(), ...existing, password: await hash(password) };
    if (existing) {
      await replaceFile(this.#path(sub), asText(account));
    } else if (!(await this.#create(account))) {
      return this.signIn(email, password); // another request created it in the meantime, for example a double click
    }
    return account;
  }

  async #create(account) {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    return createFile(this.#path(account.sub), asText(account));
  }

  #path(sub) {
    return join(this.folder, `${sub}.json`);
  }
}

export function parseEmail(text) {
  const email = String(text ?? "").trim().toLowerCase();
  if (email.length > 254 || !/^[^\s@]+@[^\s@]+\.[^\s@.]+$/.test(email)) {
    throw new SignInError("Enter an email address like someone@example.com.");
  }
  return email;
}

function subOf(email) {
  // Never change this prefix: every existing account would get a new `sub`.
  return createHash("sha256").update(`retouch-local:${email}`).digest("hex").slice(0, 32);
}

async function hash(password) {
  const salt = randomBytes(16);
  const key = await scrypt(password.normalize("NFKC"), salt, 32, COST);
  return { scheme: "scrypt", ...COST, salt: salt.toString("base64"), key: key.toString("base64") };
}

async function matches(password, { N, r, p, salt, key }) {
  const expected = Buffer.from(key, "base64");
  const actual = await scrypt(password.normalize("NFKC"), Buffer.from(salt, "base64"), expected.length, { N, r, p });
  return timingSafeEqual(actual, expected);
}

function asText(account) {
  return `${JSON.stringify(account, null, 2)}\n`;
}
