// Characters that some operating system forbids in file names.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are among them.
const FORBIDDEN = /[\\/:*?"<>|\u0000-\u001f\u007f]+/g;

/** Returns a unique name for each file's result: `photo.jpg` becomes `photo.png`, the next `photo (2).png`. */
export function resultNames(files: string[], suffix = ''): string[] {
  const taken = new Set<string>();
  return files.map((file) => {
    const stem = `${stemOf(file)}${suffix}`;
    let name = `${stem}.png`;
    // Some file systems ignore case.
    for (let count = 2; taken.has(name.toLowerCase()); count += 1) name = `${stem} (${count}).png`;
    taken.add(name.toLowerCase());
    return name;
  });
}

function stemOf(file: string): string {
  const stem = file
    .replace(/\.[^.]*$/, '')
    .replace(FORBIDDEN, '_')
    .replace(/^[.\s]+|[.\s]+$/g, '');
  return stem || 'image';
}
