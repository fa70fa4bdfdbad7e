import { Link } from 'react-router';
import { paths } from '@/lib/paths';
import { Contact } from './contact';
import type { LegalSection } from './legal-page';

export const privacySections: LegalSection[] = [
  {
    id: 'audience',
    title: 'Who this is for',
    content: (
      <p>
        The service is not for anyone under 16, and we do not knowingly keep data of anyone that young. To
        register you must be at least 18.
      </p>
    ),
  },
  {
    id: 'data',
    title: 'What is stored',
    content: (
      <ul>
        <li>Who you are: your email address, and the name under which your sign-in provider knows you.</li>
        <li>Your credits: the balance, every change of it, and your orders. We never see your card.</li>
        <li>Your images, the results made from them, the masks you draw and the words you write for them.</li>
        <li>Your runs: which tool and model, when, how long and what it cost.</li>
        <li>Without an account: the image and its result, and a count of the free runs of your address.</li>
      </ul>
    ),
  },
  {
    id: 'metadata',
    title: 'What is removed',
    content: (
      <p>
        Metadata such as the place where a photo was taken and the camera’s serial number is removed from
        every upload before it is stored.
      </p>
    ),
  },
  {
    id: 'access',
    title: 'Who can see your images',
    content: (
      <p>
        Only you can access your images. The links to them are signed, work for a short time and are not
        listed anywhere.
      </p>
    ),
  },
  {
    id: 'retention',
    title: 'How long it is kept',
    content: (
      <ul>
        <li>Images and results: until you delete them.</li>
        <li>An image processed without an account, with its result: one hour.</li>
        <li>Your email address and sign-in name: until you delete the account.</li>
        <li>
          Orders, the history of credits and the runs that were paid for: they stay when an account is
          deleted, without your name, address, images or words, because the books need them.
        </li>
        <li>
          After a deletion: a code that cannot be turned back into a name, for twelve months, so that free
          credits are given once.
        </li>
      </ul>
    ),
  },
  {
    id: 'deletion',
    title: 'Deleting and taking your data with you',
    content: (
      <p>
        On the page of your <Link to={paths.account}>account</Link> you can download everything we keep about
        you, and delete the account with all images in it. You can also write to <Contact />: a request to
        delete your account is handled within one week.
      </p>
    ),
  },
  {
    id: 'others',
    title: 'Others who take part',
    content: (
      <>
        <ul>
          <li>The sign-in provider tells us your email address. It never gets your images.</li>
          <li>The payment provider takes payments and gets your email address with them.</li>
          <li>A review service is asked for its rating only after you chose to show it.</li>
          <li>An advertising tag, where there is one, runs only after you agreed to it.</li>
        </ul>
        <p>The AI models run on our own servers. Your images are not sent to anybody for it.</p>
      </>
    ),
  },
  {
    id: 'browser',
    title: 'In your browser',
    content: (
      <p>
        Your sign-in lives in the tab and ends when you close it. Unfinished masks are kept there as well. The
        colour theme and what you agreed to are remembered until you clear your browser’s storage. We set no
        cookies for tracking.
      </p>
    ),
  },
  {
    id: 'rights',
    title: 'Your rights',
    content: (
      <p>
        You may ask what we keep about you, have it put right or deleted, object to its use, and complain to
        the data protection authority where you live. Write to <Contact />.
      </p>
    ),
  },
  {
    id: 'changes',
    title: 'Changes',
    content: (
      <p>
        This policy was last updated May 21, 2025. A new version is published here with its date. The{' '}
        <Link to={paths.terms}>Terms of Service</Link> apply beside it.
      </p>
    ),
  },
];
