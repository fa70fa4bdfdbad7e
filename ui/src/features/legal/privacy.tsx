import { Link } from 'react-router';
import { paths } from '@/lib/paths';
import { Contact } from './contact';
import type { LegalSection } from './legal-page';

export const privacyDate = 'Last updated May 21, 2025';

export const privacySummary =
  'In short: we keep your images until you delete them, only you can access them, and deleting your account deletes everything that is yours.';

export const privacySections: LegalSection[] = [
  {
    id: 'audience',
    title: 'Who this is for',
    content: (
      <p>
        The service is not for anyone under 16, and we do not knowingly store data about anyone that young.
        You must be at least 18 to register.
      </p>
    ),
  },
  {
    id: 'data',
    title: 'What we store',
    content: (
      <ul>
        <li>Who you are: your email address, and the name by which your sign-in provider knows you.</li>
        <li>Your credits: the balance, every change to it, and your orders. We never see your card.</li>
        <li>Your images, their results and file names, the masks you draw and the prompts you write.</li>
        <li>Your runs: the tool and the model, when they ran, how long they took and what they cost.</li>
        <li>
          What you set up for programs: the names of your API keys with a code that recognizes each key, and
          your webhooks with their latest deliveries.
        </li>
        <li>
          Without an account: the image and its result, and how many free runs your IP address has used.
        </li>
      </ul>
    ),
  },
  {
    id: 'metadata',
    title: 'What we remove',
    content: (
      <p>
        We remove metadata, such as the place where a photo was taken and the camera’s serial number, from
        every upload before we store it, unless a program of yours asks us to keep it. Content Credentials,
        which say how a picture was made, are kept and become part of the results. A picture that you only
        verify is not stored at all.
      </p>
    ),
  },
  {
    id: 'access',
    title: 'Who can see your images',
    content: (
      <p>
        Only you can access your images. Links to them are signed, expire after a short time and are not
        listed anywhere.
      </p>
    ),
  },
  {
    id: 'retention',
    title: 'How long we keep it',
    content: (
      <ul>
        <li>Images and results: until you delete them.</li>
        <li>An image processed without an account, and its result: one hour.</li>
        <li>Your email address and sign-in name: until you delete your account.</li>
        <li>
          Orders, the history of your credits and paid runs: these remain when you delete your account,
          without your name, address, images or prompts, because our accounting needs them.
        </li>
        <li>
          After you delete your account: for twelve months, a code that cannot be traced back to your name, so
          that free credits are granted only once.
        </li>
      </ul>
    ),
  },
  {
    id: 'deletion',
    title: 'Deleting and exporting your data',
    content: (
      <p>
        On your <Link to={paths.account}>account</Link> page you can download everything we store about you,
        and delete your account with all its images. You can also write to <Contact />: a request to delete
        your account is handled within one week.
      </p>
    ),
  },
  {
    id: 'others',
    title: 'Third parties',
    content: (
      <>
        <ul>
          <li>The sign-in provider tells us your email address. It never receives your images.</li>
          <li>The payment provider processes payments and receives your email address with them.</li>
          <li>We load the rating of a review service only after you choose to show it.</li>
          <li>An advertising tag, if there is one, runs only with your consent.</li>
        </ul>
        <p>The AI models run on our own servers. We do not send your images to anyone for processing.</p>
      </>
    ),
  },
  {
    id: 'browser',
    title: 'In your browser',
    content: (
      <p>
        Your sign-in is stored in your browser until you log out or it expires. Unfinished masks, and the run
        that you started without an account, are stored in the browser tab and disappear when you close it.
        The picture of such a run, and one that you chose before signing up, are stored in your browser for an
        hour, or until you come back after that. Your browser remembers the language, the color theme, your
        choices about cookies and ratings, and which results you have seen until you clear its storage. We set
        no tracking cookies; an advertising tag, which runs only with your consent, may.
      </p>
    ),
  },
  {
    id: 'rights',
    title: 'Your rights',
    content: (
      <p>
        You may ask what we store about you, have it corrected or deleted, object to its use, and complain to
        the data protection authority where you live. Write to <Contact />.
      </p>
    ),
  },
  {
    id: 'changes',
    title: 'Changes',
    content: (
      <p>
        This policy was last updated May 21, 2025. We publish new versions here with their date. The{' '}
        <Link to={paths.terms}>Terms of Service</Link> apply as well.
      </p>
    ),
  },
];
