import { type Message, msg } from '@/lib/translate';

const changed = msg('A statement was changed after it was signed.');
const missing = msg('A statement that was signed is missing.');
const unreadable = msg('The credentials cannot be read.');
const unfit = msg('The signature does not match the content.');
const badTime = msg('The timestamp of the signature is not valid.');

/** The C2PA's codes of failed validations (specification, 15.2), in words. */
const problems = new Map<string, Message>([
  ['assertion.dataHash.mismatch', msg('The picture was changed after it was signed, or is another one.')],
  ['assertion.boxesHash.mismatch', msg('The picture was changed after it was signed, or is another one.')],
  ['assertion.dataHash.malformed', unreadable],
  ['assertion.cbor.invalid', unreadable],
  ['assertion.json.invalid', unreadable],
  ['assertion.hashedURI.mismatch', changed],
  ['assertion.missing', missing],
  ['assertion.undeclared', msg('A statement was added after the signature.')],
  ['assertion.inaccessible', missing],
  ['claim.missing', unreadable],
  ['claim.multiple', unreadable],
  ['claim.malformed', unreadable],
  ['claim.hardBindings.missing', msg('The credentials are not bound to any picture.')],
  ['claim.cbor.invalid', unreadable],
  ['claimSignature.missing', msg('There is no signature.')],
  ['claimSignature.mismatch', unfit],
  ['signingCredential.invalid', msg('The certificate is not allowed to sign pictures.')],
  ['signingCredential.expired', msg('The certificate had expired, or was not valid yet.')],
  ['signingCredential.ocsp.revoked', msg('The certificate was revoked.')],
  ['claimSignature.outsideValidity', msg('The certificate had expired, or was not valid yet.')],
  ['timeStamp.mismatch', badTime],
  ['timeStamp.malformed', badTime],
  ['timeStamp.outsideValidity', badTime],
  ['timeStamp.untrusted', msg('The authority that confirmed the time is unknown here.')],
  ['ingredient.hashedURI.mismatch', msg('The credentials of a source picture were changed.')],
  ['ingredient.manifest.mismatch', msg('The credentials of a source picture were changed.')],
  ['ingredient.manifest.missing', msg('The credentials of a source picture are missing.')],
  ['algorithm.unsupported', msg('The credentials use a method that this server does not know.')],
]);

/** A problem in words; null for a code that the page does not know. */
export const problemText = (code: string): Message | null => problems.get(code) ?? null;
