import type { components } from '@/api/schema';

// Short names for the API's generated types; nothing else reads the schema's components.
type Schemas = components['schemas'];

/** What an operator has added to the page. Nothing of it is there until it is configured. */
export type Site = {
  /** Where people write to. */
  contactEmail?: string | null;
  /** An advertising account that wants to know of sign-ins. */
  adTag?: AdTag | null;
};
/** `id` names the account (`AW-123`), `conversion` what is counted in it (`AW-123/abc`). */
export type AdTag = { id: string; conversion: string };

export type Config = Schemas['Config'] & { site?: Site };
export type Identity = Config['identity'];
export type Pack = Config['packs'][number];
export type ToolOffer = Config['tools'][number];
export type ToolName = ToolOffer['tool'];
export type User = Schemas['User'];
export type Image = Schemas['Image'];
export type Result = Schemas['Result'];
export type Job = Schemas['Job'];
export type Checkout = Schemas['Checkout'];
export type PaymentStatus = Schemas['PaymentStatus'];
export type ApiKey = Schemas['KeyView'];
export type NewApiKey = Schemas['NewKeyView'];

/** A result as the page keeps it: `isNew` is the page's own and never comes from the API. */
export type ResultItem = Result & { isNew: boolean };
