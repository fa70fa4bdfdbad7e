// Keeps sessions, grants and refresh tokens in memory and in one JSON file, so that a restart signs nobody out.
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "./files.mjs";

export class Store {
  #entries = new Map();
  #path;
  #writing = Promise.resolve();
  #next;

  static async open(data) {
    await mkdir(data, { recursive: true, mode: 0o700 });
    const store = new Store();
    store.#path = join(data, "sessions.json");
    try {
      store.#entries = new Map(Object.entries(JSON.parse(await readFile(store.#path, "utf8"))));
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
    return store;
  }

  /** Returns the adapter class of oidc-provider; the provider creates one instance for each model, such as `Session`. */
  adapter() {
    const store = this;
    return class {
      constructor(model) {
        this.model = model;
      }
      upsert(id, payload, expiresIn) {
        const until = expiresIn ? Date.now() + expiresIn * 1000 : undefined;
        return store.#set(`${this.model}:${id}`, { payload, until });
      }
      async find(id) {
        return store.#get(`${this.model}:${id}`)?.payload;
      }
      async findByUid(uid) {
        return store.#first((key, payload) => key.startsWith(`${this.model}:`) && payload.uid === uid);
      }
      async findByUserCode() {
        return undefined; // the device flow is disabled
      }
      consume(id) {
        const key = `${this.model}:${id}`;
        const entry = store.#get(key);
        if (!entry) return undefined;
        const consumed = Math.floor(Date.now() / 1000);
        return store.#set(key, { ...entry, payload: { ...entry.payload, consumed } });
      }
      destroy(id) {
        return store.#delete([`${this.model}:${id}`]);
      }
      revokeByGrantId(grantId) {
        return store.#delete(store.#keys((key, payload) => key.startsWith(`${this.model}:`) && payload.grantId === grantId));
      }
    };
  }

  #get(key) {
    const entry = this.#entries.get(key);
    return entry && (!entry.until || entry.until > Date.now()) ? entry : undefined;
  }

  #keys(wanted) {
    return [...this.#entries.keys()].filter((key) => {
      const entry = this.#get(key);
      return entry && wanted(key, entry.payload);
    });
  }

  #first(wanted) {
    const [key] = this.#keys(wanted);
    return key && this.#get(key).payload;
  }

  #set(key, entry) {
    this.#entries.set(key, entry);
    return this.#save();
  }

  #delete(keys) {
    for (const key of keys) this.#entries.delete(key);
    return this.#save();
  }

  // Resolves when a write that started after this call has finished; concurrent calls share one write.
  #save() {
    this.#next ??= this.#writing.catch(() => {}).then(() => {
      this.#next = undefined;
      for (const key of this.#entries.keys()) if (!this.#get(key)) this.#entries.delete(key);
      this.#writing = replaceFile(this.#path, JSON.stringify(Object.fromEntries(this.#entries)));
      return this.#writing;
    });
    return this.#next;
  }
}
