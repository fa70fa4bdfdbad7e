import { expect, test } from 'vitest';
import { resultNames } from './file-names';

test('a result is named after its file', () => {
  expect(resultNames(['photo.jpg', 'my.holiday.webp', 'scan'])).toEqual([
    'photo.png',
    'my.holiday.png',
    'scan.png',
  ]);
  expect(resultNames(['photo.jpg'], '-4x')).toEqual(['photo-4x.png']);
});

test('names are unique, ignoring case', () => {
  expect(resultNames(['a.jpg', 'a.png', 'A.webp', 'a (2).png'])).toEqual([
    'a.png',
    'a (2).png',
    'A (3).png',
    'a (2) (2).png',
  ]);
});

test.each([
  ['../../etc/passwd.png', '_.._etc_passwd.png'],
  ['C:\\pictures\\me.jpg', 'C_pictures_me.png'],
  ['  .hidden .jpg', 'hidden.png'],
  ['new\nline.jpg', 'new_line.png'],
  ['.jpg', 'image.png'],
  ['猫.jpg', '猫.png'],
])('%j becomes a safe file name', (file, name) => {
  expect(resultNames([file])).toEqual([name]);
});
