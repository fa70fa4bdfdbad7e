import { Link } from 'react-router';
import { paths } from '@/lib/paths';
import { Contact } from './contact';
import type { LegalSection } from './legal-page';

export const termsDate = 'Effective July 31, 2025';

export const termsSummary =
  'In short: you must be 18 to register, you pay for runs with non-refundable credits, your images remain yours, and some models have rules of their own.';

export const termsSections: LegalSection[] = [
  {
    id: 'agreement',
    title: 'What you agree to',
    content: (
      <>
        <p>
          These terms are between you and the company that runs this service (“we”). They apply whenever you
          use it, with or without an account. If you do not agree to them, do not use the service.
        </p>
        <p>
          The service removes backgrounds, enlarges images, and repairs or changes parts of them with AI
          models.
        </p>
      </>
    ),
  },
  {
    id: 'age',
    title: 'Who may register',
    content: (
      <p>
        You must be at least 18 years old to register. Keep your sign-in details to yourself: you are
        responsible for what happens under your account.
      </p>
    ),
  },
  {
    id: 'credits',
    title: 'Credits and payment',
    content: (
      <>
        <p>
          You pay for runs of the AI tools with credits. We show the price of a run before it starts. A failed
          run costs nothing. You buy credits in packs at the prices on the{' '}
          <Link to={paths.pricing}>pricing page</Link>. A payment provider processes the payment, and we never
          see your card.
        </p>
        <p>
          <strong className="text-ink">Credits are non-refundable.</strong> You cannot transfer them or
          exchange them for money, and they end with your account. Your statutory rights as a consumer are not
          affected.
        </p>
        <p>
          New accounts start with free credits, once per person. If you delete your account and open another
          one within twelve months, the new account starts without them.
        </p>
      </>
    ),
  },
  {
    id: 'images',
    title: 'Your images',
    content: (
      <>
        <p>
          Your images remain yours. You allow us to store and process them as far as your runs require, and
          for nothing else. You must have the right to use what you upload.
        </p>
        <p>
          Images are kept until you delete them, and only their owner can access them. See the{' '}
          <Link to={paths.privacy}>Privacy Policy</Link> for details.
        </p>
      </>
    ),
  },
  {
    id: 'use',
    title: 'What is not allowed',
    content: (
      <>
        <p>You must not use the service</p>
        <ul>
          <li>to break the law or infringe the rights of others, such as copyright and privacy;</li>
          <li>to make sexual images of minors, or of anyone without their consent;</li>
          <li>to deceive others about what is real in order to harm them;</li>
          <li>to harass, threaten or defame anyone;</li>
          <li>to overload it, to circumvent its limits, or to access other people’s data.</li>
        </ul>
        <p>We may close accounts that break these rules.</p>
      </>
    ),
  },
  {
    id: 'models',
    title: 'Models with use restrictions (OpenRAIL-M)',
    content: (
      <>
        <p>
          Each result names the model that made it. Some models have a CreativeML OpenRAIL-M license or a
          similar one. Such a license permits commercial use and claims no rights to your results, but it
          restricts what the model and its results may be used for, and it requires us to pass these
          restrictions on. If such a model made your result, you agree not to use the model or the result
        </p>
        <ul>
          <li>in a way that violates a law that applies to you;</li>
          <li>to exploit or harm minors, or to attempt to do so;</li>
          <li>to generate or spread verifiably false information in order to harm others;</li>
          <li>to generate or spread personal data that can be used to harm someone;</li>
          <li>to defame, disparage or harass others;</li>
          <li>for fully automated decisions that affect someone’s rights or obligations;</li>
          <li>
            to discriminate against or harm people because of how they behave, what they are or what they
            believe;
          </li>
          <li>
            to exploit the vulnerabilities of a group of people because of age or disability, so that someone
            is harmed;
          </li>
          <li>to give medical advice or interpret medical results;</li>
          <li>
            for justice, law enforcement, immigration or asylum, such as predicting who will commit a crime.
          </li>
        </ul>
        <p>
          Anyone who receives such a model or result from you for further use must agree to the same
          restrictions: pass them on with it. Where the license itself, named with the model, says more, it
          prevails.
        </p>
      </>
    ),
  },
  {
    id: 'results',
    title: 'No guarantee of results',
    content: (
      <p>
        AI models make mistakes: check a result before you rely on it. We offer the service as is and as
        available. We do not promise that a result suits your purpose, that no one else gets a similar one, or
        that the service is always available.
      </p>
    ),
  },
  {
    id: 'closing',
    title: 'Closing your account',
    content: (
      <p>
        You can delete your account at any time, on your <Link to={paths.account}>account</Link> page or by
        writing to <Contact />. A request to delete an account is handled within one week. You lose any
        remaining credits.
      </p>
    ),
  },
  {
    id: 'liability',
    title: 'Liability',
    content: (
      <p>
        Our total liability is capped at the amount that you paid us in the last 6 months before the claim
        arose. This does not apply where the law does not allow us to limit liability.
      </p>
    ),
  },
  {
    id: 'disputes',
    title: 'Disputes',
    content: (
      <p>
        Please write to <Contact /> first. For 30 days we both try to settle the dispute informally. If that
        fails, the dispute goes to the courts of the home country of the company that runs this service.
      </p>
    ),
  },
  {
    id: 'changes',
    title: 'Changes',
    content: (
      <p>
        These terms are effective July 31, 2025. When they change, we publish the new version here with its
        date. If you continue to use the service, you agree to it.
      </p>
    ),
  },
  {
    id: 'contact',
    title: 'Contact',
    content: (
      <p>
        For questions about these terms, write to <Contact />.
      </p>
    ),
  },
];
