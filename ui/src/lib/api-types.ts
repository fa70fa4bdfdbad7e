import type { components, paths } from '@/api/schema';

// Short names for the API's generated types. Only this file reads the schema's components.
type Schemas = components['schemas'];

export type Config = Schemas['Config'];
export type AdTag = Schemas['AdTag'];
export type Identity = Config['identity'];
export type Pack = Config['packs'][number];
export type ToolOffer = Config['tools'][number];
export type ToolName = ToolOffer['tool'];
export type BoundModel = Schemas['BoundModel'];
export type User = Schemas['User'];
export type Storage = Schemas['Storage'];
export type Image = Schemas['Image'];
export type ImageList = Schemas['ImageList'];
type ImageQuery = NonNullable<paths['/api/images']['get']['parameters']['query']>;
export type ImageSort = NonNullable<ImageQuery['sort']>;
type ArchiveRequest = paths['/api/images/archive']['post']['requestBody']['content']['application/json'];
export type ArchiveContent = ArchiveRequest['include'];
export type Result = Schemas['Result'];
export type Verification = Schemas['Verification'];
/** What a manifest claims. */
export type Claim = Schemas['VerifiedClaim'];
export type Job = Schemas['Job'];
export type Count = Schemas['Count'];
export type Checkout = Schemas['Checkout'];
export type PaymentStatus = Schemas['PaymentStatus'];
export type ApiKey = Schemas['KeyView'];
export type NewApiKey = Schemas['NewKeyView'];
export type Webhook = Schemas['Webhook'];
export type WebhookWithSecret = Schemas['WebhookWithSecret'];
export type WebhookRequest = Schemas['WebhookRequest'];
export type EventType = Schemas['EventType'];
export type Delivery = Schemas['Delivery'];

/** The first event of `/api/events`. */
export type Account = { user: User; jobs: Job[] };

/** A result in a list. The API does not know `isNew`. */
export type ResultItem = Result & { isNew: boolean };
