import { Link } from 'react-router';
import { paths } from '@/lib/paths';
import { Contact } from './contact';
import type { LegalSection } from './legal-page';

export const termsSections: LegalSection[] = [
  {
    id: 'agreement',
    title: 'What you agree to',
    content: (
      <>
        <p>
          These terms are between you and the company that runs this service (“we”). They apply whenever you
          use it, with an account or without one. Whoever does not agree to them must not use it.
        </p>
        <p>
          The service removes backgrounds, enlarges images and repairs or changes parts of them with AI
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
        You must be at least 18 years old to register. You keep your way of signing in to yourself, and you
        answer for what is done with your account.
      </p>
    ),
  },
  {
    id: 'credits',
    title: 'Credits and payment',
    content: (
      <>
        <p>
          Runs of the AI tools are paid with credits. What a run costs is shown before it begins. A run that
          fails costs nothing. Credits are bought in packs at the prices on the{' '}
          <Link to={paths.pricing}>pricing page</Link>; a payment provider takes the payment, and we never see
          your card.
        </p>
        <p>
          <strong className="text-ink">Credits are non-refundable.</strong> They cannot be passed on or paid
          out, and end with the account. Rights that the law gives you as a consumer stay as they are.
        </p>
        <p>
          New accounts begin with free credits, once for each person. An account that follows a deleted one
          begins without them for twelve months.
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
          Your images stay yours. You allow us to store and process them as far as the runs that you start
          need it, and for nothing else. You must have the right to use what you upload.
        </p>
        <p>
          Images are kept until you delete them, and only their owner can access them. The{' '}
          <Link to={paths.privacy}>Privacy Policy</Link> says more.
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
          <li>against the law, or against the rights of others, such as copyright and privacy;</li>
          <li>to make sexual images of minors, or of anybody without their consent;</li>
          <li>to deceive others about what is real in order to harm them;</li>
          <li>to harass, threaten or defame anybody;</li>
          <li>to overload it, to get around its limits, or to reach what belongs to others.</li>
        </ul>
        <p>We may end an account that breaks these rules.</p>
      </>
    ),
  },
  {
    id: 'models',
    title: 'Models with use restrictions (OpenRAIL-M)',
    content: (
      <>
        <p>
          Each result names the model that made it. Some models come under a CreativeML OpenRAIL-M licence or
          one like it. Such a licence allows paid use and claims nothing of your results, but it restricts
          what the model and its results may be used for, and obliges us to pass that on. Where such a model
          made your result, you agree that you will not use either of them
        </p>
        <ul>
          <li>in a way that breaks a law that applies to you;</li>
          <li>to exploit or harm minors, or to try to;</li>
          <li>to make or spread information that can be shown to be false, in order to harm others;</li>
          <li>to make or spread personal data that can be used to harm somebody;</li>
          <li>to defame, disparage or harass others;</li>
          <li>for decisions made by machines alone that affect somebody’s rights or obligations;</li>
          <li>
            to discriminate against or harm people for how they behave, what they are or what they believe;
          </li>
          <li>
            to take advantage of the weaknesses of a group, by age or by handicap, so that somebody is harmed;
          </li>
          <li>to give medical advice or interpret medical results;</li>
          <li>
            for justice, law enforcement, immigration or asylum, such as predicting who will commit a crime.
          </li>
        </ul>
        <p>
          Whoever gets such a model or results for further use from you must agree to the same restrictions:
          pass them on with it. The licence itself, named with the model, is what counts where it says more.
        </p>
      </>
    ),
  },
  {
    id: 'results',
    title: 'No promise of a result',
    content: (
      <p>
        AI models make mistakes: look at a result before you rely on it. The service is offered as it is and
        as it is available. We do not promise that a result suits your purpose, that nobody else gets a
        similar one, or that the service is always there.
      </p>
    ),
  },
  {
    id: 'closing',
    title: 'Closing your account',
    content: (
      <p>
        You can delete your account whenever you like, on the page of your{' '}
        <Link to={paths.account}>account</Link> or by writing to <Contact />. A request to delete an account
        is handled within one week. Credits that are left are lost with it.
      </p>
    ),
  },
  {
    id: 'liability',
    title: 'Liability',
    content: (
      <p>
        All that we are liable for together is capped at the amount that you paid us in the last 6 months
        before the claim arose. This does not apply where the law does not let us limit liability.
      </p>
    ),
  },
  {
    id: 'disputes',
    title: 'Disputes',
    content: (
      <p>
        Please write to <Contact /> first. For 30 days we both try to settle the dispute informally. What is
        not settled then goes to the courts of the home country of the company that runs this service.
      </p>
    ),
  },
  {
    id: 'changes',
    title: 'Changes',
    content: (
      <p>
        These terms are effective July 31, 2025. When they change, the new ones are published here with their
        date; whoever goes on using the service agrees to them.
      </p>
    ),
  },
  {
    id: 'contact',
    title: 'Contact',
    content: (
      <p>
        For anything about these terms, write to <Contact />.
      </p>
    ),
  },
];
