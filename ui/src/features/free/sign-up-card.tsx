import type { ComponentProps } from 'react';
import { ButtonLink } from '@/components/button-link';
import type { EditingTool } from '@/features/catalog/tool';
import { useConfig, useTool } from '@/lib/env';
import { plural, t } from '@/lib/translate';
import { isMoreWithAccount } from './more-with-account';

/** The start of a sign-up, and the picture that it takes along. */
export type SignUpLink = Pick<ComponentProps<typeof ButtonLink>, 'to' | 'state' | 'onClick'>;

/** What an account adds to the tool. */
export function SignUpCard({ tool, signUp }: { tool: EditingTool; signUp: SignUpLink }) {
  const { newUserCredits } = useConfig();
  const offer = useTool(tool.name);
  return (
    <div className="grid justify-items-start gap-3 rounded-lg bg-accent-wash p-4 md:p-6">
      <p className="text-sm">
        {offer && isMoreWithAccount(tool, offer) && <strong>{t(tool.texts.withAccount)} </strong>}
        {plural(newUserCredits, {
          one: 'New accounts start with # free credit, and we keep your images.',
          other: 'New accounts start with # free credits, and we keep your images.',
        })}
      </p>
      <ButtonLink variant="secondary" size="sm" {...signUp}>
        {t('Try for free')}
      </ButtonLink>
    </div>
  );
}
