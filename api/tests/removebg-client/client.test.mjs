// Tests our API with the official remove.bg client. A Rust test starts this and passes the API's address, a key and an
// image.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import client from 'remove.bg'
import { redirectTo } from './redirect.mjs'

const facts = JSON.parse(process.env.RETOUCH_CLIENT_FACTS ?? 'null')
assert(facts, 'A Rust test starts this: cargo test -p retouch-api removebg')
redirectTo(facts.origin)

const folder = mkdtempSync(join(tmpdir(), 'removebg-'))
after(() => rmSync(folder, { recursive: true }))
const picture = join(folder, 'picture.png')
writeFileSync(picture, Buffer.from(facts.picture, 'base64'))

// The size is at a fixed position in every PNG.
const sizeOf = (png) => [png.readUInt32BE(16), png.readUInt32BE(20)]

test('a file', async () => {
  const outputFile = join(folder, 'cutout.png')
  const result = await client.removeBackgroundFromImageFile({
    apiKey: facts.key,
    path: picture,
    size: 'auto',
    type: 'person',
    outputFile,
  })
  assert.equal(result.creditsCharged, '5')
  assert.deepEqual([result.resultWidth, result.resultHeight], ['64', '48'])
  assert.equal(result.rateLimit, '60')
  assert.equal(result.rateLimitRemaining, '59')
  assert.match(result.rateLimitReset, /^\d{10}$/)
  assert.equal(result.detectedType, undefined)
  assert.equal(readFileSync(outputFile, 'base64'), result.base64img)
  assert.deepEqual(sizeOf(readFileSync(outputFile)), [64, 48])
})

test('base64, cropped with a margin', async () => {
  const result = await client.removeBackgroundFromImageBase64({
    apiKey: facts.key,
    base64img: facts.picture,
    size: 'preview',
    crop: true,
    crop_margin: '2px',
  })
  assert.deepEqual(sizeOf(Buffer.from(result.base64img, 'base64')), [20, 16])
})

test('a background color, which makes the result a JPEG', async () => {
  const result = await client.removeBackgroundFromImageFile({
    apiKey: facts.key,
    path: picture,
    bg_color: '81d4fa',
    scale: '50%',
    position: 'center',
    channels: 'rgba',
  })
  assert.equal(Buffer.from(result.base64img, 'base64').subarray(0, 3).toString('hex'), 'ffd8ff')
})

test('a URL is rejected with a reason', async () => {
  const url = 'https://example.test/a.jpg'
  const refused = client.removeBackgroundFromImageUrl({ apiKey: facts.key, url })
  await assert.rejects(refused, (errors) => {
    assert.equal(errors.length, 1)
    assert.equal(errors[0].code, 'unsupported_parameter')
    assert.match(errors[0].title, /^image_url is not supported/)
    return true
  })
})

test('a wrong key is rejected with a reason', async () => {
  const refused = client.removeBackgroundFromImageFile({ apiKey: 'rt_wrong', path: picture })
  await assert.rejects(refused, (errors) => errors[0].code === 'auth_failed')
})
