import { t } from '@/lib/translate';
import { ForeignText } from './foreign-text';
import { sourceText, termOf } from './source-texts';

/** Where pixels come from, in words; the IPTC's own term if the page does not know it. */
export function SourceText({ uri }: { uri: string }) {
  const text = sourceText(uri);
  return text ? t(text) : <ForeignText text={termOf(uri)} />;
}
