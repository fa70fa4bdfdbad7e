import type { ReactNode } from 'react';
import { DateTime } from '@/components/date-time';
import { Icon } from '@/components/icon';
import type { Claim } from '@/lib/api-types';
import { t } from '@/lib/translate';
import { actionText } from './action-texts';
import { ForeignText } from './foreign-text';
import { ownText } from './own-texts';
import { ProblemList } from './problem-list';
import { SourceText } from './source-text';

type ClaimViewProps = {
  claim: Claim;
  /** Whether nothing is wrong with the manifest. */
  isSound: boolean;
  /** How many pictures lie between the checked picture and this claim's. */
  depth?: number;
};

/** What a manifest claims: who signed it, what was done, and which pictures went in, with their own manifests. */
export function ClaimView({ claim, isSound, depth = 0 }: ClaimViewProps) {
  const { generator, signature, actions, ingredients } = claim;
  const Title = depth === 0 ? 'h3' : 'h4';
  return (
    <div className="grid min-w-0 gap-5">
      <dl className="grid gap-x-6 gap-y-3 text-sm lg:grid-cols-[9rem_1fr]">
        {signature && (
          <Row name={t('Signed by')}>
            <SignerText signature={signature} isSound={isSound} />
          </Row>
        )}
        {signature && (
          <Row name={t('Signed on')}>
            {signature.time ? (
              <When time={signature.time} />
            ) : (
              <span className="text-soft">{t('Not known: nobody confirmed the time.')}</span>
            )}
          </Row>
        )}
        {generator && (
          <Row name={t('Made with')}>
            <ForeignText text={generator} />
          </Row>
        )}
      </dl>
      {actions.length > 0 && (
        <section className="grid gap-2">
          <Title className="text-sm font-semibold">{t('What was done')}</Title>
          <ol className="grid list-outside list-decimal gap-2 pl-5 text-sm marker:text-soft">
            {actions.map((action, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the order is all that tells them apart.
              <Action key={index} action={action} generator={generator} />
            ))}
          </ol>
        </section>
      )}
      {ingredients.length > 0 && (
        <section className="grid gap-2">
          <Title className="text-sm font-semibold">{t('Pictures that went in')}</Title>
          <ul className="grid gap-3">
            {ingredients.map((ingredient, index) => (
              <Ingredient
                // biome-ignore lint/suspicious/noArrayIndexKey: the order is all that tells them apart.
                key={index}
                ingredient={ingredient}
                isSound={isSound && ingredient.problems.length === 0}
                depth={depth + 1}
                isOpen={depth === 0 && ingredients.length === 1}
              />
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function Row({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="col-span-full grid gap-x-6 lg:grid-cols-subgrid">
      <dt className="text-soft">{name}</dt>
      <dd className="min-w-0">{children}</dd>
    </div>
  );
}

type SignerTextProps = { signature: NonNullable<Claim['signature']>; isSound: boolean };

function SignerText({ signature, isSound }: SignerTextProps) {
  const { name, organization, isOurs } = signature;
  const names = [...new Set([name, organization].filter((text) => text != null))];
  return (
    <>
      {names.length === 0 && t('A certificate without a name')}
      {names.map((text, index) => (
        <span key={text}>
          {index > 0 && ', '}
          <ForeignText text={text} />
        </span>
      ))}
      {/* Anybody can put a copy of our certificate into a manifest that is not valid. */}
      {isOurs && isSound && <span className="text-soft">{` · ${t('the certificate of this server')}`}</span>}
    </>
  );
}

/** A time from a file, which may be invalid. */
function When({ time }: { time: string }) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? <ForeignText text={time} /> : <DateTime at={date} />;
}

type ActionProps = { action: Claim['actions'][number]; generator: string | null | undefined };

function Action({ action: { action, description, agent, when, source }, generator }: ActionProps) {
  const name = actionText(action);
  const own = description ? ownText(description) : null;
  return (
    <li className="min-w-0">
      <p>
        <span className="font-medium">{name ? t(name) : <ForeignText text={action} />}</span>
        {description && (
          <>
            {': '}
            {own ? t(own) : <ForeignText text={description} />}
          </>
        )}
      </p>
      {source && (
        <p className="text-soft">
          <SourceText uri={source} />
        </p>
      )}
      {(when || (agent && agent !== generator)) && (
        <p className="text-xs text-soft">
          {when && <When time={when} />}
          {when && agent && agent !== generator && ' · '}
          {agent && agent !== generator && <ForeignText text={agent} />}
        </p>
      )}
    </li>
  );
}

type IngredientProps = {
  ingredient: Claim['ingredients'][number];
  isSound: boolean;
  depth: number;
  isOpen: boolean;
};

function Ingredient({ ingredient, isSound, depth, isOpen }: IngredientProps) {
  const { title, isParent, claim, problems } = ingredient;
  const own = title ? ownText(title) : null;
  return (
    <li className="grid min-w-0 gap-2 border-l-2 border-line pl-3 text-sm">
      <div>
        <p className="font-medium">
          {own ? t(own) : title ? <ForeignText text={title} /> : t('A picture without a name')}
        </p>
        <p className="text-soft">
          {isParent ? t('The picture that was edited') : t('A picture that was added')}
        </p>
      </div>
      <ProblemList problems={problems} />
      {claim ? (
        <details open={isOpen} className="group/claim min-w-0">
          <summary className="inline-flex min-h-9 thumb:min-h-11 cursor-pointer items-center gap-1 rounded-sm font-medium text-accent">
            {t('Its own credentials')}
            <Icon name="chevron" className="size-4 transition-transform group-open/claim:rotate-180" />
          </summary>
          <div className="pt-2">
            <ClaimView claim={claim} isSound={isSound} depth={depth} />
          </div>
        </details>
      ) : (
        <p className="text-soft">{t('It has no Content Credentials of its own.')}</p>
      )}
    </li>
  );
}
