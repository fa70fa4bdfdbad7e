// What some system or other does not take in a file's name.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to be found.
const UNUSABLE = /[\\/:*?"<>|\u0000-\u001f\u007f]+/g;

/** Names for the results of files, each once: `photo.jpg` becomes `photo.png`, the next one `photo (2).png`. */
export function resultNames(files: string[], suffix = ''): string[] {
  const taken = new Set<string>();
  return files.map((file) => {
    const stem = `${stemOf(file)}${suffix}`;
    let name = `${stem}.png`;
    // Compared as systems do that do not tell A from a.
    for (let count = 2; taken.has(name.toLowerCase()); count += 1) name = `${stem} (${count}).png`;
    taken.add(name.toLowerCase());
    return name;
  });
}

function stemOf(file: string): string {
  const stem = file
    .replace(/\.[^.]*$/, '')
    .replace(UNUSABLE, '_')
    .replace(/^[.\s]+|[.\s]+$/g, '');
  return stem || 'image';
}
